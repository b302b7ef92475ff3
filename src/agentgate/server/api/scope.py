"""What a handler asks of whoever calls it, and who that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentgate.model import NEIGHBOUR, Identity

SCOPE_OPTION: Final = "scope"
IDENTITY_KEY: Final = "agentgate.identity"  # in the ASGI scope of a request; set by the guard in front of every route

PUBLIC: Final[dict[str, Any]] = {SCOPE_OPTION: None}  # for whoever can reach the port


def requires(scope: str) -> dict[str, Any]:
    """The `opt` of a handler for which a token needs this scope."""
    return {SCOPE_OPTION: scope}


def identity_of(asgi_scope: Mapping[str, Any]) -> Identity:
    """Who sent the request."""
    identity: Identity = asgi_scope.get(IDENTITY_KEY, NEIGHBOUR)
    return identity
