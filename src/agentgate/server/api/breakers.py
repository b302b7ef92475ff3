"""Which breakers are open, and what they have counted."""

from __future__ import annotations

from typing import Any, Final

from litestar import Request, get
from litestar.datastructures import State

from agentgate.model import OBSERVE
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.scope import identity_of, requires

_DOC: Final = Doc(
    answers={
        200: Shown(
            type=dict[str, list[dict[str, Any]]],
            example={
                "breakers": [
                    {
                        "agent": "stock_agent",
                        "task_type": "reserve",
                        "state": "open",
                        "state_s": 4.2,
                        "tries_again_in_s": 5.8,
                        "ok": 12,
                        "faults": 8,
                        "slow": 0,
                        "rejected": 1,
                        "ratio": 0.4,
                        "opened": 1,
                    }
                ]
            },
        )
    }
)


@get("/v1/breakers", sync_to_thread=False, opt=requires(OBSERVE) | documented(_DOC))
def breakers(state: State, request: Request[Any, Any, Any]) -> dict[str, list[dict[str, Any]]]:
    """Every breaker of the tenant: agent, task type (none: the agent's own), state, and what it has counted."""
    return {"breakers": state.view.breakers(identity_of(request.scope).tenant)}
