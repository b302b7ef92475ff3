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

LOOPBACK_AUTHORITY: Final = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
SHOWN_MAX: Final = 100


def access_finding(hosts: Sequence[str], origins: Sequence[str]) -> str | None:
    """Why a request with these Host and Origin headers is refused; None when it may pass."""
    if len(hosts) != 1 or not LOOPBACK_AUTHORITY.fullmatch(hosts[0]):
        return f"Host {' '.join(hosts)[:SHOWN_MAX]!r} is not this machine; use 127.0.0.1 or localhost"
    for origin in origins:
        if origin.lower() != f"http://{hosts[0]}".lower():
            return f"Origin {origin[:SHOWN_MAX]!r} may not use this gate: a page of another site is not a client"
    return None
