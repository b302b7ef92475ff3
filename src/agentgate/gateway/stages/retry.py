"""The one owner of retries: what follows an attempt, by the table in `core.attempts` (DESIGN 4.1).

A read, or a skill declared repeatable, may be run again while an earlier unit has not answered; the first answer
wins. Any other write has one unit at a time: after its time-out this stage waits on for the same unit, which is not
an attempt. Whatever happens, nothing begins at or after the call's deadline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from agentgate.core.attempts import after_attempt, ending
from agentgate.gateway.spans import attempt_span, last_attempt
from agentgate.model import Outcome, failure

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward
    from agentgate.model.link import StopKind


class Retry:
    """Walks down the attempt scope as often as the rules, the budget and the deadline allow."""

    name: ClassVar[str] = "retry"
    mechanism: ClassVar[str | None] = "retry"
    stays: ClassVar[bool] = True  # switched off, one attempt is all there is

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._traces = parts.mode("tracing") != "off"
        self._observes = parts.mode(self.mechanism) == "observe"

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """The call's outcome; units of an unkeyed call do not outlive it."""
        try:
            outcome = await self._until_final(passage, onward)
        except BaseException:
            self._stop_units(passage, answered=False)
            raise
        self._stop_units(passage, answered=outcome.ok)
        if outcome.ok:
            self._parts.policies.budget.success(passage.call.agent, self._clock.now())
        return passage.honest(outcome)

    async def _until_final(self, passage: Passage, onward: Onward) -> Outcome:
        outcome = await self._attempt(passage, onward)
        while True:
            follows = after_attempt(ending(outcome), repeatable=passage.safe)
            if follows == "final":
                return outcome
            if follows == "wait_on":
                answer = await passage.first_answer(passage.call.deadline)
                if answer is None:
                    return failure("deadline_exceeded", sent=True, detail="the target was still at work")
                outcome = answer
                continue
            if follows == "ask_check":
                known = await self._ask_check(passage, outcome)
                if known is not None:
                    return known
            answered = await self._back_off(passage, outcome)
            if answered is not None:
                return answered
            outcome = await self._attempt(passage, onward)

    async def _ask_check(self, passage: Passage, lost: Outcome) -> Outcome | None:
        """What is known of a run that got lost; None: nothing happened. Without a record there is nobody to ask."""
        how = lost.error.detail if lost.error is not None else ""
        if passage.unit is not None and passage.unit.keyed:
            return await self._parts.checks.ask(passage.call, how=how)
        return failure("outcome_unknown", sent=True, detail=f"the run that got lost was not recorded: {how}")

    async def _attempt(self, passage: Passage, onward: Onward) -> Outcome:
        began = self._clock.now()
        passage.attempts += 1
        passage.gap_s = began - passage.attempt_ended_at if passage.attempts > 1 else 0.0
        passage.call = replace(passage.call, attempt=passage.attempts, avoid=passage.last_instance)
        try:
            outcome = await onward(passage)
        except BaseException:
            # Also when its unit ends with it, as a closed request does, or has just answered and nobody reads that.
            passage.may_have_run = passage.sent or (passage.unit is not None and passage.unit.sent)
            self._leave_span(passage, failure("cancelled", sent=passage.sent), began)
            raise
        passage.attempt_ended_at = self._clock.now()
        if outcome.error is not None and outcome.error.sent:
            passage.may_have_run = True
            if passage.flight is not None:
                passage.flight.may_have_run = True
        self._leave_span(passage, outcome, began)
        return outcome

    def _leave_span(self, passage: Passage, outcome: Outcome, began: float) -> None:
        if not self._traces or passage.unit is None:
            return
        now = self._clock.now()
        if outcome.ok:
            passage.last_attempt = last_attempt(passage, began, now)
        else:
            self._parts.spans.record(attempt_span(passage, outcome, began, now))

    async def _back_off(self, passage: Passage, outcome: Outcome) -> Outcome | None:
        """Wait before the next attempt; an outcome means that there is none."""
        now = self._clock.now()
        error = outcome.error
        wait_ms = error.retry_after_ms if error is not None else None
        if passage.attempts >= self._parts.attempts_max:
            return outcome
        delay_s = self._parts.policies.backoff.delay_s(
            passage.attempts, self._parts.chance.draw, None if wait_ms is None else wait_ms / 1000
        )
        until = now + delay_s
        if until >= passage.call.deadline:
            return outcome
        if self._observes:
            if self._parts.policies.budget.tokens(passage.call.agent, now) >= 1.0:
                self._parts.note(passage, "would_retry")
            return outcome
        if not self._parts.policies.budget.take(passage.call.agent, now):
            return outcome
        passage.retire_unit()
        return await passage.first_answer(until)

    def _stop_units(self, passage: Passage, *, answered: bool) -> None:
        """Nobody waits any more for what still runs, unless it holds a key that has no answer yet."""
        for unit in passage.live_units:
            if not unit.keyed or (answered and passage.safe):
                kind: StopKind = "cancel" if passage.safe else "expire"
                self._parts.units.stop(unit, kind, "its call has ended")
