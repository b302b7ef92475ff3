"""What a change of an instance means on the path: to the queue of its agent, to its units, to its connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from agentgate.model import logged

if TYPE_CHECKING:
    from agentgate.core.slots import Slots
    from agentgate.gateway.http_agents import HttpAgents
    from agentgate.gateway.parking import Parking
    from agentgate.gateway.peers import Peers
    from agentgate.gateway.units import Units
    from agentgate.model import Card
    from agentgate.ports.clock import Clock

log = structlog.get_logger(__name__)


class Instances:
    """Hears from the directory (`ports.routes.RouteListener`)."""

    def __init__(
        self, slots: Slots, parking: Parking, units: Units, peers: Peers, http_agents: HttpAgents, clock: Clock
    ) -> None:
        self._slots = slots
        self._parking = parking
        self._units = units
        self._peers = peers
        self._http_agents = http_agents
        self._clock = clock

    def instance_joined(self, agent: str, instance: str, card: Card) -> None:
        """It takes calls; those who wait are served after the units that it reports have been counted."""
        self._slots.join(agent, instance, card.concurrency, self._clock.now())
        self._http_agents.joined(instance, card)
        if self._http_agents.get(instance) is not None:
            self._lose_restored(instance)
        asyncio.get_running_loop().call_soon(self._parking.pump)

    def instance_away(self, agent: str, instance: str) -> None:
        """Its link is gone or silent; a silent connection is closed, so that the process makes a new one."""
        log.info("instance_away", agent=logged(agent), instance=logged(instance))
        self._slots.away(instance)
        self._parking.pump()
        peer = self._peers.get(instance)
        if peer is not None and peer.session is not None:
            peer.session.end("nothing was heard for too long")

    def instance_draining(self, agent: str, instance: str) -> None:
        """It takes nothing new."""
        log.info("instance_draining", agent=logged(agent), instance=logged(instance))
        self._slots.drain(instance)
        self._parking.pump()
        self._http_agents.draining(instance)

    def instance_lost(self, agent: str, instance: str) -> None:
        """Nothing will come from it any more."""
        units = self._units.of_instance(instance)
        log.info("instance_lost", agent=logged(agent), instance=logged(instance), units=len(units))
        for unit in units:
            if unit.state != "claiming":
                self._units.lost(unit)
        self._slots.leave(instance)
        self._parking.pump()
        self._peers.lost(instance)
        self._http_agents.lost(instance)

    def _lose_restored(self, instance: str) -> None:
        """Requests of the gate before this one: their connections ended with it, and nobody can be asked."""
        for unit in self._units.of_instance(instance):
            if unit.restored:
                self._units.lost(unit)
