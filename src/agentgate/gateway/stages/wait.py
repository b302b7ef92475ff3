"""The wait of a unit for a call that it makes: opened once, and closed on every path.

While it is open, the unit's slot is for others, and the wait graph knows of it. A wait that was found to close a knot
later is ended here: the call comes to an outcome that says so, as if its target had answered it (`core.waits`). A call
that its unit has only started can be ended like this as well, while a declared wait names it (`gateway/awaiting.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, ClassVar

from agentgate.model import Outcome

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


class Wait:
    """Everything that a call of a unit waits for happens behind this stage."""

    name: ClassVar[str] = "wait"
    mechanism: ClassVar[str | None] = "wait_graph"
    stays: ClassVar[bool] = True  # switched off, units give their slots back all the same

    def __init__(self, parts: Parts) -> None:
        self._waits = parts.waits

    def __call__(self, passage: Passage, onward: Onward) -> Awaitable[Outcome]:
        """Go onward; nobody waits for a root call but its client."""
        return self._during(passage, onward) if passage.call.parent_unit else onward(passage)

    async def _during(self, passage: Passage, onward: Onward) -> Outcome:
        wait = self._waits.open(passage)
        try:
            refusal = wait.ended_with or self._waits.repeats(wait)
            outcome = await onward(passage) if refusal is None else Outcome(error=refusal)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if wait.ended_with is None or task is None or task.uncancel():  # its caller left as well
                raise
            outcome = passage.honest(Outcome(error=wait.ended_with))
        finally:
            self._waits.leave(wait)
        self._waits.came(wait, outcome)
        return outcome
