"""Who is there."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Request, get
from litestar.datastructures import State

from agentgate.directory import AgentInfo
from agentgate.model import OBSERVE
from agentgate.server.api.doc import Doc, Shown, documented
from agentgate.server.api.scope import identity_of, requires


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody who is there."""

    version: int
    agents: list[AgentInfo]


_DOC: Final = Doc(
    answers={
        200: Shown(
            type=AgentList,
            example={
                "version": 7,
                "agents": [
                    {
                        "agent": "stock_agent",
                        "tenant": "default",
                        "tier": "core",
                        "skills": [{"task_type": "reserve"}],
                        "instances": [
                            {
                                "instance": "9f86d081884c7d65",
                                "state": "connected",
                                "state_s": 61.2,
                                "silent_s": 0.4,
                                "concurrency": 8,
                                "version": "",
                            }
                        ],
                    }
                ],
            },
        )
    }
)


@get("/v1/agents", sync_to_thread=False, opt=requires(OBSERVE) | documented(_DOC))
def agents(state: State, request: Request[Any, Any, Any]) -> AgentList:
    """The tenant's agents with their skills and instances."""
    view, tenant = state.view, identity_of(request.scope).tenant
    return AgentList(version=view.directory.snapshot().version, agents=view.agents(tenant))
