"""A place at one instance of the target: waits in the target's queue, and picks the instance.

The slot belongs to the unit that will run in it (`gateway/units.py` gives it back at the unit's end). Only while no
unit has taken it over does this stage give it back. Observed only, the policy lets every call through (`core.slots`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.core.policy import Admit, Park, Refuse, Ticket
from agentgate.core.slots import SlotTicket
from agentgate.core.switch import target_refusal
from agentgate.model import Call, Outcome, Problem, plain

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


class Slot:
    """`core.slots` as a stage whose ticket outlives it."""

    name: ClassVar[str] = "slot"
    mechanism: ClassVar[str | None] = "concurrency"
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._slots = parts.policies.slots
        self._parking = parts.parkings[self.name]
        self._clock = parts.clock
        self._breakers = parts.policies.breakers
        self._watches_backlog = parts.watches_backlog

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """Go onward with an instance; free the slot if no unit has taken it."""
        entered = self._clock.now()
        passage.queued_s = 0.0
        call = passage.call
        if self._parts.routes.off and (off := self._switched_off(call)) is not None:  # since it was let in
            return Outcome(error=off)
        decision = self._slots.admit(call, entered)
        if isinstance(decision, Park):
            self._parked(passage, decision.ticket)
            decision = await self._queue(passage, decision.ticket)
            passage.queued_s = self._clock.now() - entered
        if isinstance(decision, Refuse):
            return Outcome(error=decision.error)
        ticket = decision.ticket
        assert isinstance(ticket, SlotTicket)
        if ticket.would:
            self._parts.note(passage, ticket.would)
        passage.slot = passage.slot_taken = ticket
        try:
            return await onward(passage)
        finally:
            if passage.slot is not None:
                passage.slot = None
                self._slots.abandon(ticket, self._clock.now())
                self._parking.pump()

    async def _queue(self, passage: Passage, ticket: Ticket) -> Admit | Refuse:
        """Wait in the target's queue, unless whoever has the slots waits for this call."""
        passage.is_queued = True
        try:
            knot = self._parts.closes_knot(passage, "slot")
            if knot is not None:
                self._slots.abandon(ticket, self._clock.now())
                return Refuse(knot)
            return await self._parking.wait(ticket)
        finally:
            passage.is_queued = False
            self._parts.waits.moved_on(passage)

    def _switched_off(self, call: Call) -> Problem | None:
        return target_refusal(self._parts.routes.resolve(call.tenant, plain(call.agent)))

    def _parked(self, passage: Passage, ticket: Ticket) -> None:
        """Whoever takes the flight over goes on at this place; a long queue may open the breaker."""
        assert isinstance(ticket, SlotTicket)
        if passage.flight is not None:
            passage.flight.place = ticket.place
        if self._watches_backlog:
            call = passage.call
            queued = self._slots.queued(call.agent, call.task_type)
            self._breakers.note_backlog(call.agent, call.task_type, queued, self._clock.now())
