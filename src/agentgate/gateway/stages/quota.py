"""What a call costs is taken from all quotas that count it, before anything else is taken; unsent, it costs nothing.

A repeat that is answered from the ledger, or joins running work, never comes here. Checks and degraded
answers are free: they settle what was paid for already.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from agentgate.core.policy import Refuse
from agentgate.model import ASIDE_PREFIXES, Outcome, failure

if TYPE_CHECKING:
    from agentgate.core.policy import Ticket
    from agentgate.core.quota import Quotas
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward
    from agentgate.model import Call
    from agentgate.ports.routes import Routes


class Quota:
    """`core.quota` as a stage."""

    name: ClassVar[str] = "quota"
    mechanism: ClassVar[str | None] = "quota"
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._routes = parts.routes
        self._quotas = parts.policies.quotas
        self._now = parts.clock.now
        self._observes = parts.mode(self.mechanism) == "observe"

    def __call__(self, passage: Passage, onward: Onward) -> Awaitable[Outcome]:
        """Go onward; without any limit nothing stands in between."""
        if not self._quotas.in_use or passage.call.task_type.startswith(ASIDE_PREFIXES):
            return onward(passage)
        return self._limited(passage, onward)

    async def _limited(self, passage: Passage, onward: Onward) -> Outcome:
        ticket = self._enter(passage)
        if isinstance(ticket, Outcome):
            return ticket
        try:
            outcome = await onward(passage)
        except BaseException:  # its caller left; what was sent goes on
            self._quotas.settle(ticket, failure("cancelled", sent=passage.sent), self._now())
            raise
        self._quotas.settle(ticket, outcome, self._now())
        return outcome

    def _enter(self, passage: Passage) -> Ticket | Outcome:
        call = passage.call = as_counted(passage.call, self._quotas, self._routes)
        if self._observes:
            shadow = self._quotas.shadow(call, self._now())
            if shadow.would:
                self._parts.note(passage, shadow.would)
            return shadow
        decision = self._quotas.admit(call, self._now())
        return Outcome(error=decision.error) if isinstance(decision, Refuse) else decision.ticket


def as_counted(call: Call, quotas: Quotas, routes: Routes) -> Call:
    """The call with what limits look at: the agent that it is for, by its plain name, and what it costs."""
    route = routes.resolve(call.tenant, call.target)
    skill = route.card.skill(call.task_type) if route is not None else None
    cost = quotas.cost(call.task_type, skill.cost if skill is not None else 1.0)
    return replace(call, agent=route.agent if route is not None else "", cost=cost)
