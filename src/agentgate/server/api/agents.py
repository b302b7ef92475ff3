"""Who is there."""

from __future__ import annotations

import msgspec
from litestar import get
from litestar.datastructures import State

from agentgate.directory import AgentInfo
from agentgate.model import OBSERVE
from agentgate.server.api.scope import requires


class AgentList(msgspec.Struct, frozen=True, kw_only=True):
    """Everybody who is there."""

    version: int
    agents: list[AgentInfo]


@get("/v1/agents", sync_to_thread=False, opt=requires(OBSERVE))
def agents(state: State) -> AgentList:
    """Agents with their skills and instances."""
    directory = state.view.directory
    return AgentList(version=directory.snapshot().version, agents=directory.agents())
