"""Switching an agent off and on while the system runs (REQUIREMENTS A6; what it means for a call: `core.switch`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from agentgate.core.switch import target_refusal
from agentgate.model import SwitchedOff

if TYPE_CHECKING:
    from agentgate.core.slots import Slots
    from agentgate.gateway.parking import Parking
    from agentgate.model import Route
    from agentgate.ports.clock import Clock
    from agentgate.ports.routes import Routes

log = structlog.get_logger(__name__)


class Switch:
    """The switches of all agents; where they stand is in their routes."""

    def __init__(self, routes: Routes, slots: Slots, parking: Parking, clock: Clock) -> None:
        self._routes = routes
        self._slots = slots
        self._parking = parking
        self._clock = clock

    def turn(self, tenant: str, agent: str, *, on: bool, by: str, reason: str) -> Route | None:
        """Switch it; returns its route, or None when there is no such agent.

        Who waits in its queue is refused at once. Switched off again, it keeps the first reason and time.
        """
        known = self._routes.resolve(tenant, agent)
        if known is None or known.agent != agent:
            return None
        off = None if on else known.settings.off or SwitchedOff(by=by, at=self._clock.wall(), reason=reason)
        route = self._routes.configure(tenant, agent, replace(known.settings, off=off))
        log.warning("agent_switched", tenant=tenant, agent=agent, on=on, by=by, reason=reason)
        refusal = target_refusal(route)
        if refusal is not None:
            self._slots.evict(known.qualified, None, refusal)
            self._parking.pump()
        return route
