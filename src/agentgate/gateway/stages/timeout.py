"""How long one attempt may take, and what an attempt that takes longer means.

The limit is learnt per target and task type (`core.timeout`), never beyond the call's deadline. An attempt cut by its
own call's deadline, sooner than the target usually answers, says nothing about the target: the caller was too short.
Observed only, nothing but the call's deadline cuts; an attempt that outlived its limit is noted, and counts as cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from agentgate.core.patience import is_too_short

if TYPE_CHECKING:
    from agentgate.core.timeout import TimeoutPlan
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward
    from agentgate.model import Call, Outcome


class Timeout:
    """Sets the attempt's limit, and judges an attempt that reached it."""

    name: ClassVar[str] = "timeout"
    mechanism: ClassVar[str | None] = "dynamic_timeout"
    stays: ClassVar[bool] = True  # switched off, the time is fixed: see `core.timeout`

    def __init__(self, parts: Parts) -> None:
        self._timeouts = parts.policies.timeouts
        self._units = parts.units
        self._clock = parts.clock
        self._parts = parts
        self._observes = parts.mode(self.mechanism) == "observe"

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """Go onward, at most until the limit."""
        unit = passage.unit
        assert unit is not None, "the time-out stands behind the claim"
        now = self._clock.now()
        plan = unit.plan = self._timeouts.plan(passage.call, now)
        if is_too_short(passage.call, plan.fair_s):
            self._report_short(passage.call)
        deadline = passage.call.deadline
        by_deadline = deadline <= now + plan.timeout_s
        passage.until = deadline if by_deadline or self._observes else now + plan.timeout_s
        outcome = await onward(passage)
        if self._observes and self._clock.now() - now > plan.timeout_s:
            self._parts.note(passage, "would_cut")
        if unit.ended or outcome.code != "deadline_exceeded":
            return outcome
        return self._cut(passage, plan, outcome, by_deadline=by_deadline)

    def _report_short(self, call: Call) -> None:
        usual_s = self._timeouts.p95_s(call.agent, call.task_type, heavy=call.heavy)
        if usual_s is not None:
            self._parts.findings.report(
                "caller_limit_below_gate",
                f"{call.caller} > {call.target}.{call.task_type}",
                tenant=call.tenant,
                limit_s=call.patience_s,
                usual_s=round(usual_s, 3),
            )

    def _cut(self, passage: Passage, plan: TimeoutPlan, outcome: Outcome, *, by_deadline: bool) -> Outcome:
        unit = passage.unit
        assert unit is not None
        elapsed_s = self._clock.now() - unit.started_at
        if not by_deadline:
            unit.cut = True
            self._timeouts.cut(plan, elapsed_s)
        if passage.safe:
            self._units.stop(unit, "cancel", "no answer within the attempt's time-out")
        if by_deadline and elapsed_s < plan.fair_s and outcome.error is not None:
            return replace(outcome, error=replace(outcome.error, fault="caller"))
        return outcome
