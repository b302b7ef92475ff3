"""Which requests a gate listens to at all: those of programs, and of no foreign web page.

A page in a browser can send requests to loopback, or into the network its reader is in: from a foreign origin, or from
its own name after that has been pointed at the gate (DNS rebinding). Browsers cannot hide either: a foreign page
carries `Origin`, a rebound name is in `Host`. So `Host` has to be a name of the gate, and `Origin`, if any, has to be
the gate itself. The link takes no `Origin` at all: no page has business there.

Names of the gate are the loopback ones, `server.host` and those of `server.hosts`. With tokens it may also be reached
by any address: an address cannot be pointed elsewhere, and a page that comes from one has another origin. Tokens alone
would nearly do, because no browser adds one by itself; but what is public, and what a page of the gate's own may keep
one day, is nobody else's business either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
ADDRESSES: Final = (r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", r"\[[0-9a-f:.]{2,45}\]")
SHOWN_MAX: Final = 100

# Answers are data of this moment for programs; a browser that shows one must not run, frame or keep anything of it. And
# whoever asked is to know that it was a gate, and not another server at its address.
GATE_NAME: Final = "agentgate"
SAFE_HEADERS: Final = [
    (GATE_NAME.encode(), b"v1"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
SAFE_FIELDS: Final = b"".join(b"%b: %b\r\n" % header for header in SAFE_HEADERS)


class Access:
    """The rule of one gate; `hosts` are its names beside those of loopback."""

    def __init__(self, hosts: Iterable[str] = (), *, by_address: bool = False) -> None:
        allowed = [*map(re.escape, (*LOOPBACK, *hosts)), *(ADDRESSES if by_address else ())]
        self._authority = re.compile(rf"(?:{'|'.join(allowed)})(?::[0-9]{{1,5}})?", re.IGNORECASE)
        self._advice = (
            "is not a name of this gate; add it to server.hosts, or use an address"
            if by_address
            else "is not this machine; use 127.0.0.1 or localhost"
        )

    def finding(self, hosts: Sequence[str], origins: Sequence[str]) -> str | None:
        """Why a request with these Host and Origin headers is refused; None when it may pass."""
        if len(hosts) != 1 or not self._authority.fullmatch(hosts[0]):
            return f"Host {' '.join(hosts)[:SHOWN_MAX]!r} {self._advice}"
        own = [f"{scheme}://{hosts[0]}".lower() for scheme in ("http", "https")]
        for origin in origins:
            if origin.lower() not in own:
                return f"Origin {origin[:SHOWN_MAX]!r} may not use this gate: a page of another site is not a client"
        return None
