"""Which breakers are open, and what they have counted."""

from __future__ import annotations

from typing import Any

from litestar import Request, get
from litestar.datastructures import State

from agentgate.model import OBSERVE
from agentgate.server.api.scope import identity_of, requires


@get("/v1/breakers", sync_to_thread=False, opt=requires(OBSERVE))
def breakers(state: State, request: Request[Any, Any, Any]) -> dict[str, list[dict[str, Any]]]:
    """Every breaker of the tenant: agent, task type (none: the agent's own), state, and what it has counted."""
    return {"breakers": state.view.breakers(identity_of(request.scope).tenant)}
