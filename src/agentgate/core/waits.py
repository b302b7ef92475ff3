"""The wait graph: who waits for whom, and which wait would leave its own unit waiting for ever.

Decides whether a wait may begin. The rules (DESIGN 4.4, D1 to D4):

- Nodes are units, not agents: an agent may be entered again while it has a free slot, and two ways to one unit are no
  cycle.
- A unit is dead if it cannot get on (`core.reduction`), and in the knot if it reaches itself through the dead
  (`core.knots`). A check finds a knot only where this very wait puts its unit in one, by certain waits alone: suspected
  ones count as if they would come.
- A unit that would wait *behind* a knot may: it is marked (`OpenWait.behind`), and goes on once the knot is undone.
- A check does `WORK_MAX` work at most: nodes, and what is read of each. What takes more is left to the timer
  (`core.wait_scan`), and counted.

How it works. Edges are followed forward only, from the wait that has begun or changed its aim, and read from their
sources on the way; so nothing here can disagree with them, and beginning or ending a wait is one entry in a map. The
maps hold what is open: units are bounded by the slots of all agents, the waits of a unit by `WAITS_MAX`.

Every knot has a last wait that closed it, so whoever checks a wait when it begins, and again whenever its aim changes,
misses only what others close: room in a pool that goes away, a promise that is taken back. That is the timer's as well.

Not covered: what is done about a knot that stands already (`core.wait_scan`, `core.victim`).
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from agentgate.core.knots import Tangle, View, components
from agentgate.core.open_wait import Aim, Group, Member, OpenWait, Pool, UnitFacts
from agentgate.core.reduction import Reduction
from agentgate.model import Knot

__all__ = ["Aim", "Group", "Member", "OpenWait", "Pool", "UnitFacts", "Waits"]

WORK_MAX: Final = 16_000  # some 5 ms, a chain of 5 000; a check that takes more holds the loop for too long
CHUNK: Final = 32  # steps between two looks at the work
WAITS_MAX: Final = 1_000  # of one unit; far beyond what a chain allows it


class Waits:
    """All open units of a gate and what they wait for. `left` counts the checks that were left to the timer."""

    __slots__ = ("_certain", "_facts", "_opened", "_waits", "left")

    def __init__(self) -> None:
        self._facts: dict[str, UnitFacts] = {}
        self._waits: dict[str, dict[OpenWait, None]] = {}  # of units that have any
        self._certain = View(self._facts, self._waits)
        self._opened = 0
        self.left = 0

    def __len__(self) -> int:
        """How many units are open."""
        return len(self._facts)

    def begin(self, facts: UnitFacts) -> None:
        """A unit is open. One that is open already is known by what is said last, and keeps its waits."""
        self._facts[facts.unit] = facts

    def end(self, unit: str) -> None:
        """It has ended, its waits with it; safe twice."""
        self._facts.pop(unit, None)
        self._waits.pop(unit, None)

    def open(self, wait: OpenWait) -> None:
        """Its unit waits from now on. A wait of a unit that is not open, or has too many, is not kept."""
        if wait.unit in self._facts:
            mine = self._waits.setdefault(wait.unit, {})
            if len(mine) < WAITS_MAX:
                self._opened += 1
                wait.number = self._opened
                mine[wait] = None

    def close(self, wait: OpenWait) -> None:
        """It waits no more; safe twice."""
        mine = self._waits.get(wait.unit)
        if mine is not None:
            mine.pop(wait, None)
            if not mine:
                del self._waits[wait.unit]

    def facts(self, unit: str) -> UnitFacts | None:
        """What is known of a unit, if it is open."""
        return self._facts.get(unit)

    def of(self, unit: str) -> tuple[OpenWait, ...]:
        """The waits of a unit."""
        return tuple(self._waits.get(unit, ()))

    def all(self) -> list[OpenWait]:
        """Every wait, in the order in which their units began to wait."""
        return list(chain.from_iterable(self._waits.values()))

    @property
    def edges(self) -> int:
        """How many waits are open."""
        return sum(map(len, self._waits.values()))

    def view(self, *, older_than: float) -> View:
        """The graph as the timer sees it: suspected waits too, but none begun after `older_than`."""
        return View(self._facts, self._waits, suspected=True, older_than=older_than)

    def check(self, wait: OpenWait) -> Knot | None:
        """The knot that this wait puts its unit in, or would if it is not open yet; marks a wait that is behind one."""
        wait.behind = False
        if not wait.certain or wait.unit not in self._facts:
            return None
        if wait in self._waits.get(wait.unit, ()):
            return self._look(wait)
        self.open(wait)
        try:
            return self._look(wait)
        finally:
            self.close(wait)

    def _look(self, wait: OpenWait) -> Knot | None:
        reduction = Reduction(self._certain.groups, self._waits, goal=wait)
        while reduction.pending and reduction.work < WORK_MAX:
            reduction.advance(CHUNK)
        if reduction.pending:
            self.left += 1
            return None
        return None if wait in reduction.live else self._knot(wait, reduction)

    def _knot(self, wait: OpenWait, reduction: Reduction) -> Knot | None:
        """The wait cannot end by itself: is its own unit the reason?"""
        dead = dict(reduction.dead())
        aimed = dead.pop(wait)
        mine = next((nodes for nodes in components(dead) if nodes and wait.unit in nodes), [])
        if not set(mine).isdisjoint(chain.from_iterable(aimed)):
            return Tangle(self._certain, {node: dead[node] for node in mine}).knot(wait.unit, wait)
        wait.behind = True
        return None
