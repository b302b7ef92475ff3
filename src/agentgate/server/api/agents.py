"""Who is there."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, get
from litestar.datastructures import State

from agentgate.directory import AgentInfo
from agentgate.model import OBSERVE
from agentgate.server.api.scope import identity_of, requires


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody who is there."""

    version: int
    agents: list[AgentInfo]


@get("/v1/agents", sync_to_thread=False, opt=requires(OBSERVE))
def agents(state: State, request: Request[Any, Any, Any]) -> AgentList:
    """The tenant's agents with their skills and instances."""
    directory, tenant = state.view.directory, identity_of(request.scope).tenant
    return AgentList(version=directory.snapshot().version, agents=directory.agents(tenant))
