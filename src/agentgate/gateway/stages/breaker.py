"""The circuit breaker, and the question that comes before it: whose fault was it, the instance's or the agent's?

After every attempt the instance's health is judged first (`core.instances`): the faults of an instance that is thrown
out are not the agent's and are taken out of the breaker again. What opens empties the target's queue of the calls it
concerns, at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.core.breakers import BreakerTicket
from agentgate.core.policy import Admit
from agentgate.core.verdict import instance_verdict
from agentgate.model import Outcome, plain, problem, tenant_of

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


class Breaker:
    """`core.breakers` as a stage."""

    name: ClassVar[str] = "breaker"
    mechanism: ClassVar[str | None] = "circuit_breaker"
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._breakers = parts.policies.breakers
        self._slots = parts.policies.slots
        self._slot_parking = parts.parkings["slot"]
        self._clock = parts.clock
        self._observes = parts.mode(self.mechanism) == "observe"

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """Go onward with a permit; settle it exactly once."""
        ticket = self._enter(passage)
        if isinstance(ticket, Outcome):
            return ticket
        try:
            outcome = await onward(passage)
        except BaseException:
            self._breakers.abandon(ticket, self._clock.now())
            raise
        self._judge(passage, ticket, outcome)
        return outcome

    def _enter(self, passage: Passage) -> BreakerTicket | Outcome:
        now = self._clock.now()
        call = passage.call
        if self._observes:
            passage.breaker_state = self._breakers.state(call.agent, call.task_type, now)
            shadow = self._breakers.shadow(call, now)
            if shadow.would:
                self._parts.note(passage, shadow.would)
            return shadow
        decision = self._breakers.admit(call, now)
        if not isinstance(decision, Admit):
            passage.breaker_state = self._breakers.state(call.agent, call.task_type, now)
            self._parts.counters.retries_saved += self._parts.attempts_max - passage.attempts + 1
            return Outcome(error=decision.error)
        assert isinstance(decision.ticket, BreakerTicket)
        passage.breaker_state = decision.ticket.state
        return decision.ticket

    def _judge(self, passage: Passage, ticket: BreakerTicket, outcome: Outcome) -> None:
        now = self._clock.now()
        slot = passage.slot_taken
        assert slot is not None, "the breaker stands behind the slot"
        slot.breaker = ticket
        health = self._slots.record(slot, instance_verdict(outcome), now)
        if health.retracted:
            self._breakers.retract([known.breaker for known in health.retracted if known.breaker is not None], now)
        if health.counts:
            self._breakers.settle(ticket, outcome, now)
        else:
            self._breakers.skip(ticket, now)
        self._empty_queues(now)
        self._slot_parking.pump()

    def _empty_queues(self, now: float) -> None:
        for opening in self._breakers.openings():
            if self._observes:
                continue
            wait_s = max(0.0, opening.reopens_at - now)
            name, tenant = plain(opening.agent), tenant_of(opening.agent)
            subject = f"{name}.{opening.task_type}" if opening.task_type else name
            self._parts.findings.report("breaker_opened", subject, tenant=tenant, open_s=round(wait_s, 3))
            error = problem("breaker_open", retry_after_s=wait_s, detail=f"{opening.agent} has just begun to fail")
            self._slots.evict(opening.agent, opening.task_type, error)
