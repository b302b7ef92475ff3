"""The one adapter that makes a stage of a policy: exactly one settle or abandon for every admit, on every path."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.core.policy import Admit, Park, Policy, Refuse, Ticket
from agentgate.model import Outcome

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


class PolicyStage:
    """Admits by a policy, waits if it parks the call, goes onward, and tells the policy what came of it."""

    name: ClassVar[str]
    mechanism: ClassVar[str | None]
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._now = parts.clock.now
        self._policy = self.policy(parts)
        self._parking = parts.parkings[self.name]
        self._observes = parts.mode(self.mechanism) == "observe"

    @staticmethod
    def policy(parts: Parts) -> Policy:
        """The policy that decides here."""
        raise NotImplementedError

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """Pass the policy, then go onward; a refusal is the outcome."""
        if self._observes:
            ticket = self._observed(passage)
        else:
            decision = self._policy.admit(passage.call, self._now())
            if not isinstance(decision, Admit):
                if isinstance(decision, Park):
                    decision = await self._parking.wait(decision.ticket)
                if isinstance(decision, Refuse):
                    return Outcome(error=decision.error)
            ticket = decision.ticket
        try:
            outcome = await onward(passage)
        except BaseException:
            self._policy.abandon(ticket, self._now())
            self._parking.pump()
            raise
        self._policy.settle(ticket, outcome, self._now())
        self._parking.pump()
        return outcome

    def _observed(self, passage: Passage) -> Ticket:
        ticket = self._policy.shadow(passage.call, self._now())
        if ticket.would:
            self._parts.note(passage, ticket.would)
        return ticket
