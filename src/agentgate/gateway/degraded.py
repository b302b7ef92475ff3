"""Asks an agent's degraded handler for an answer, in place of a unit that does not get on.

The degraded handler of a skill is a read of the same agent, `degraded:<task_type>`, given the payload of the call. It
goes through the gate like any call, on behalf of the one whose call it stands in for, at the place in the queue that
the unit had, and rather not to the instance that is stuck. No unit waits for it: the caller's waits for the call that
it stands in for, or not, as it has said. What it answers is never written to the ledger: the effect is still the unit's
to tell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from agentgate.model import Call, Outcome, degraded_type, plain

if TYPE_CHECKING:
    from agentgate.gateway.units import Unit
    from agentgate.ports.clock import Clock
    from agentgate.ports.routes import Routes


class Degraded:
    """The degraded branch of skills that have one."""

    def __init__(
        self,
        routes: Routes,
        clock: Clock,
        *,
        call: Callable[[Call], Awaitable[Outcome]],
        new_id: Callable[[str], str],
    ) -> None:
        self._routes = routes
        self._clock = clock
        self._call = call
        self._new_id = new_id

    async def answer(self, unit: Unit, until: float) -> Outcome | None:
        """What the degraded handler answers by then (monotonic); None: there is none, or it has no answer."""
        now = self._clock.now()
        if unit.ended or now >= until or not self._has_handler(unit):
            return None
        outcome = await self._call(self._call_of(unit, now, until))
        return Outcome(value=outcome.value, degraded=True) if outcome.ok else None

    def _has_handler(self, unit: Unit) -> bool:
        if unit.was_restored:  # its payload is not known here
            return False
        route = self._routes.resolve(unit.call.tenant, plain(unit.call.agent))
        skill = route.card.skill(unit.call.task_type) if route is not None else None
        return skill is not None and skill.degraded

    def _call_of(self, unit: Unit, now: float, until: float) -> Call:
        call = unit.call
        return Call(
            id=self._new_id("c"),
            target=plain(call.agent),
            task_type=degraded_type(call.task_type),
            business_key=call.business_key,
            action=call.action,
            payload=call.payload,
            effect="read",
            priority=call.priority,
            tenant=call.tenant,
            caller=call.caller,
            user=call.user,
            received_at=now,
            deadline=until,
            trace_id=call.trace_id,
            parent_span_id=call.span_id,
            depth=call.depth,
            place=unit.slot.place if unit.slot is not None else 0,
            avoid=unit.instance,
        )
