"""Who is there, as every gateway and SDK may remember it."""

from __future__ import annotations

from msgspec import Struct

from agentgate.model.agent_settings import AS_DECLARED, AgentSettings
from agentgate.model.card import Card
from agentgate.model.http import Endpoint
from agentgate.model.names import qualified


class Route(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One agent: the union of its instances' cards, and which instances are there.

    Inside the gate the names of instances are qualified (`model.names`), in what leaves it they are plain.
    `endpoints` says of those that are reached by HTTP where they are; all others come to the gate by themselves.
    """

    card: Card
    instances: tuple[str, ...] = ()
    tenant: str = "default"
    settings: AgentSettings = AS_DECLARED
    endpoints: dict[str, Endpoint] = {}

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.card.agent

    @property
    def qualified(self) -> str:
        """What the gate keeps the agent by (`model.names`)."""
        return qualified(self.tenant, self.card.agent)


class RouteSnapshot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All routes at one version; a higher version is newer, across restarts too."""

    version: int = 0
    routes: tuple[Route, ...] = ()
