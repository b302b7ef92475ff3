"""The timer of the wait graph: finds the knots that nobody could refuse, and has one unit of each give way.

A third of `detect_interval_s` passes between two looks, and waits of that age are looked at: so a knot is found within
two thirds of it after its last wait began, and the rest is for a busy gate. A look is done in slices, between which
the loop serves everybody else. It is level-triggered: whatever goes wrong in one look, the next one finds what still
stands.

The victim's waits that hold it in the knot are ended at once: its calls fail with `deadlock`, as if their targets had
answered, and it may take another way. Nothing is killed. A knot gets a grace time for those waits to end before a
second unit has to give way. What the victim waits for after them is another knot, and is found as soon as any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import structlog

from agentgate.core.deadlock import released
from agentgate.core.victim import choose_victim
from agentgate.core.wait_scan import Scan
from agentgate.runtime.service import Service
from agentgate.runtime.slices import Slices

if TYPE_CHECKING:
    from agentgate.core.deadlocks import Deadlocks
    from agentgate.core.knots import Tangle
    from agentgate.core.open_wait import OpenWait
    from agentgate.core.waits import Waits
    from agentgate.model import Knot
    from agentgate.ports.clock import Clock

log = structlog.get_logger(__name__)

STEP_NODES = 200  # looked at between two glances at the clock: a fraction of a slice


@dataclass(frozen=True, kw_only=True)
class WaitGraphOptions:
    """How often the whole graph is looked at. Times in seconds.

    - `detect_interval_s`, 3: by then a knot has been signalled.
    - `slice_s`, 0.002: how long a look holds the loop; a call takes a tenth of that.
    - `grace_s`, 5: for the waits of the one that gave way to end, before another one has to.
    """

    detect_interval_s: float = 3.0
    slice_s: float = 0.002
    grace_s: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{field.name} must be above 0, not {value}")

    @property
    def period_s(self) -> float:
        """Between two looks, and the age at which a wait is looked at."""
        return self.detect_interval_s / 3


class DeadlockTimer(Service):
    """Looks at the whole graph as long as it is entered; `found` is told of each knot and who gives way in it."""

    def __init__(
        self,
        waits: Waits,
        clock: Clock,
        options: WaitGraphOptions,
        *,
        found: Callable[[Knot, str], None],
        totals: Deadlocks,
        observes: bool = False,
    ) -> None:
        super().__init__()
        self._waits = waits
        self._clock = clock
        self._options = options
        self._found = found
        self._totals = totals
        self._observes = observes
        self._ending: dict[OpenWait, float] = {}  # given up, and until when they may still stand in a knot

    async def _start(self) -> None:
        self._spawn(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._options.period_s)
            try:
                await self.look()
            except Exception:
                log.exception("deadlock_timer_failed")

    async def look(self) -> None:
        """One look at everything that waits long enough."""
        now = self._clock.now()
        self._ending = {wait: until for wait, until in self._ending.items() if now < until}
        scan = Scan(self._waits, now - self._options.period_s)
        slices = Slices(self._clock, self._options.slice_s)
        while not scan.done:
            tangle = scan.step(STEP_NODES)
            if tangle is not None:
                self._resolve(tangle)
            await slices.pause_if_over()
        self._totals.phantoms += scan.phantoms

    def _resolve(self, tangle: Tangle) -> None:
        members = tangle.members
        if any(wait in self._ending for member in members for wait in tangle.waits_of(member.unit)):
            return
        now = self._clock.now()
        chosen = choose_victim(members, now)
        knot = tangle.knot(chosen.unit)
        waits = tangle.waits_of(chosen.unit)
        self._ending.update(dict.fromkeys(waits, now + self._options.grace_s))
        self._found(knot, chosen.unit)
        if not self._observes:
            for wait in waits:
                wait.release(released(knot))
