"""Who calls, and whether the request is one: its key parts, its size, the unit it says it comes from.

The link has read the request and attributed it (`gateway/entry.py`); what was wrong with it ends the call here, after
the trace has been opened, so that a refused call leaves a span like any other.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, ClassVar

from agentgate.core.keys import check_parts
from agentgate.gateway.stage import answered
from agentgate.model import Outcome, failure

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


class Identity:
    """Refuses what is not a proper request of a known caller."""

    name: ClassVar[str] = "identity"
    mechanism: ClassVar[str | None] = None
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._clock = parts.clock

    def __call__(self, passage: Passage, onward: Onward) -> Awaitable[Outcome]:
        """Go onward with a request that is in order."""
        refusal = passage.refusal or check_parts(passage.call)
        if refusal is not None:
            return answered(Outcome(error=refusal))
        if self._clock.now() >= passage.call.deadline:
            return answered(failure("deadline_exceeded", detail="no time was left when the call arrived"))
        return onward(passage)
