"""A caller that goes on repeating what was answered `retry: never` is held back from that target, and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agentgate.model import ASIDE_PREFIXES, Outcome

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


class HoldBack:
    """`core.abuse` as a stage; what the gate itself asks is not its caller's doing."""

    name: ClassVar[str] = "abuse"
    mechanism: ClassVar[str | None] = "abuse"
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._abuse = parts.policies.abuse
        self._now = parts.clock.now
        self._observes = parts.mode(self.mechanism) == "observe"

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """Go onward unless the caller is held back, and look at what it was told."""
        if self._abuse.any_held:
            refusal = self._abuse.refusal(passage.call, self._now())
            if refusal is not None:
                if not self._observes:
                    return Outcome(error=refusal)
                self._parts.note(passage, "would_hold_back")
        outcome = await onward(passage)
        if outcome.error is not None and outcome.error.retry == "never":
            self._learn(passage, outcome)
        return outcome

    def _learn(self, passage: Passage, outcome: Outcome) -> None:
        call = passage.call
        if call.task_type.startswith(ASIDE_PREFIXES):
            return
        hold = self._abuse.answered(call, outcome, self._now())
        if hold is not None:
            self._parts.findings.report(
                "hammering_caller",
                f"{call.caller} > {call.target}",
                tenant=call.tenant,
                task_type=call.task_type,
                code=hold.code,
                repeats=hold.repeats,
                held_s=hold.hold_s,
            )
