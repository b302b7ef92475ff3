"""Hands the unit to its process and waits for the first answer; an earlier unit of the call may come first."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from agentgate.model import Outcome, failure, plain

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


NO_ANSWER: Final = "the target did not answer in time"


class Dispatch:
    """The last stage of an attempt."""

    name: ClassVar[str] = "dispatch"
    mechanism: ClassVar[str | None] = None
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._invoke = parts.invoke
        self._units = parts.units
        self._counters = parts.counters

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:  # noqa: ARG002 - the end of the path
        """The first answer, or the news that none came in time."""
        unit = passage.unit
        assert unit is not None, "dispatch stands behind the claim"
        self._counters.attempts += 1
        self._counters.retries += passage.attempts > 1
        if not self._invoke(unit):
            detail = f"instance {plain(unit.instance)} left before the request was sent"
            lost = failure("agent_lost", detail=detail)
            self._units.unsent(unit, lost)
        outcome = await passage.first_answer(passage.until)
        return outcome if outcome is not None else failure("deadline_exceeded", sent=True, detail=NO_ANSWER)
