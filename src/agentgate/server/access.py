"""Who may talk to a gate without tokens: programs of this machine, and no web page.

A page in a browser can send requests to loopback too: from a foreign origin, or from its own name after it has been
pointed at 127.0.0.1 (DNS rebinding). Browsers cannot hide either: a foreign page carries `Origin`, a rebound name is
in `Host`. So `Host` has to be a loopback name, and `Origin`, if any, has to be the gate itself. The link takes no
`Origin` at all: no page has business there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agentgate.model import NEIGHBOUR, Identity, Problem, problem

LOOPBACK_AUTHORITY: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
SHOWN_MAX: Final = 100

# Answers are data of this moment for programs; a browser that shows one must not run, frame or keep anything of it.
SAFE_HEADERS: Final = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
SAFE_FIELDS: Final = b"".join(b"%b: %b\r\n" % header for header in SAFE_HEADERS)


def admit(headers: Sequence[tuple[bytes, bytes]]) -> Identity | Problem:
    """Who sent a request with these headers, or why it is refused."""
    hosts, origins = (
        [value.decode("latin-1") for known, value in headers if known == name] for name in (b"host", b"origin")
    )
    finding = access_finding(hosts, origins)
    return NEIGHBOUR if finding is None else problem("forbidden", detail=finding)


def access_finding(hosts: Sequence[str], origins: Sequence[str]) -> str | None:
    """Why a request with these Host and Origin headers is refused; None when it may pass."""
    if len(hosts) != 1 or not LOOPBACK_AUTHORITY.fullmatch(hosts[0]):
        return f"Host {' '.join(hosts)[:SHOWN_MAX]!r} is not this machine; use 127.0.0.1 or localhost"
    for origin in origins:
        if origin.lower() != f"http://{hosts[0]}".lower():
            return f"Origin {origin[:SHOWN_MAX]!r} may not use this gate: a page of another site is not a client"
    return None
