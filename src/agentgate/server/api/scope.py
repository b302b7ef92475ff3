"""What a handler asks of whoever calls it, and who that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from agentgate.model import SUBMIT, Identity, problem
from agentgate.server.problems import Refused

SCOPE_OPTION: Final = "scope"
IDENTITY_KEY: Final = "agentgate.identity"  # in the ASGI scope of a request; set by the guard in front of every route

OR: Final = " or "
PUBLIC: Final[dict[str, Any]] = {SCOPE_OPTION: None}  # for whoever can reach the port


def requires(*scopes: str) -> dict[str, Any]:
    """The `opt` of a handler for which a token needs one of these; `{name}` in one is that part of the request's path.

    An agent's own token may call, as if it had `submit`.
    """
    return {SCOPE_OPTION: OR.join(scopes)}


def scope_of(handler: BaseRouteHandler) -> str | None:
    """The scope that a token needs for this handler, None for a public one; raises `TypeError` if it does not say."""
    if SCOPE_OPTION not in handler.opt:
        raise TypeError(f"{handler} does not say what scope it needs: give it `opt=requires(…)`, or `opt=PUBLIC`")
    scope: str | None = handler.opt[SCOPE_OPTION]
    return scope


def identity_of(asgi_scope: Mapping[str, Any]) -> Identity:
    """Who sent the request; without the guard in front of it, nobody knows, and that is an error."""
    identity: Identity = asgi_scope[IDENTITY_KEY]
    return identity


def check_scope(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Refuse a request whose token lacks the scope of its handler; what has none is for trusted neighbours only."""
    identity = identity_of(connection.scope)
    scope = handler.opt.get(SCOPE_OPTION, "")
    if scope is None:
        return
    for name, value in connection.path_params.items():
        scope = scope.replace(f"{{{name}}}", str(value))
    if not any(identity.may_call() if one == SUBMIT else identity.may(one) for one in scope.split(OR)):
        raise Refused(problem("forbidden", detail=f"this token lacks the scope {scope or 'of this route'}"))
