"""Who is there: where the directory and the gateway meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from agentgate.model import AgentQuota, AgentSettings, Card, Endpoint, Route, RouteSnapshot


class RouteListener(Protocol):
    """Hears of every change of an instance, at once and in order. Names are qualified (`model.names`)."""

    def instance_joined(self, agent: str, instance: str, card: Card) -> None:
        """It is connected and takes calls (also after it was away)."""
        ...

    def instance_away(self, agent: str, instance: str) -> None:
        """Its link is gone or silent: units are kept for the grace time, new calls go elsewhere."""
        ...

    def instance_draining(self, agent: str, instance: str) -> None:
        """It finishes what is in hand and takes nothing new."""
        ...

    def instance_lost(self, agent: str, instance: str) -> None:
        """The grace time is over, or it said good-bye: nothing will come from it any more."""
        ...


class Routes(Protocol):
    """The directory, as the gateway uses it. The names of instances that it is told are qualified (`model.names`)."""

    @property
    def quotas(self) -> Mapping[tuple[str, str], AgentQuota]:
        """What operators have set, by tenant and agent; it changes in place."""
        ...

    @property
    def off(self) -> Collection[tuple[str, str]]:
        """The agents that are switched off, by tenant and name; hardly ever any."""
        ...

    def resolve(self, tenant: str, target: str) -> Route | None:
        """The agent for a target as named: an agent's name, or `skill:<task_type>` (some agent that declares it).

        Also an agent that is only remembered from before a restart, while its instances may still come back.
        """
        ...

    def snapshot(self, tenant: str | None = None) -> RouteSnapshot:
        """All routes with their version, or one tenant's, with instances by their plain names and no endpoints."""
        ...

    def configure(self, tenant: str, agent: str, settings: AgentSettings) -> Route | None:
        """Set what operators want of an agent, from now on and over restarts; None when there is none of this name."""
        ...

    def hello(self, tenant: str, card: Card, instance: str, endpoint: Endpoint | None = None) -> None:
        """An instance connected; raises `ValueError` with a sentence when its card cannot be accepted.

        One with an endpoint is reached by HTTP, and its signs of life are whatever the gateway takes for them.
        """
        ...

    def knows(self, instance: str) -> bool:
        """Whether it is there, or may come back: connected, away, or remembered from before a restart."""
        ...

    def seen(self, instance: str) -> None:
        """Any frame came from it."""
        ...

    def closed(self, instance: str) -> None:
        """Its connection ended without a good-bye."""
        ...

    def drain(self, instance: str) -> None:
        """It takes nothing new from now on."""
        ...

    def gone(self, instance: str) -> None:
        """It left in good order: nothing is in its hands."""
        ...

    def listen(self, listener: RouteListener) -> None:
        """Tell this listener of every change from now on."""
        ...
