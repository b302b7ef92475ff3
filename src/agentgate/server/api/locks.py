"""Which locks are held and waited for."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State

from agentgate.model import OBSERVE, LockView
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.scope import identity_of, requires


class LockList(msgspec.Struct, frozen=True, kw_only=True):
    """The locks of the caller's tenant that somebody has or waits for, by name."""

    locks: list[LockView]


_DOC: Final = Doc(
    answers={
        200: Shown(
            type=LockList,
            example={
                "locks": [
                    {
                        "name": "stock",
                        "held": [
                            {
                                "id": "9f86d081884c7d65.7",
                                "owner": "order_agent",
                                "instance": "9f86d081884c7d65",
                                "unit": "u7a31c5",
                                "mode": "exclusive",
                                "scope": "message",
                                "since_s": 1.2,
                                "epoch": 1879048199,
                                "lease_s": 28.9,
                                "waits_s": None,
                            }
                        ],
                        "waiting": [],
                    }
                ]
            },
        )
    }
)


@get("/v1/locks", sync_to_thread=False, opt=requires(OBSERVE) | documented(_DOC))
def locks(request: Request[Any, Any, Any], state: State) -> LockList:
    """Every lock of the tenant that is in use: who holds it under which epoch, who waits, and for how long."""
    return LockList(locks=state.view.locks(identity_of(request.scope).tenant))
