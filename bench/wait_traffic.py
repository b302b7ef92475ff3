"""Traffic for the wait graph: units of a layered platform that call, fan out, join, lock and choose, until they end.

Agents stand in ten layers and mostly call a deeper one, so chains are one to ten calls deep; now and then a call goes
anywhere, as agents' calls do, and may be refused. A unit keeps its slot while it waits, and there are so few that many
agents are full. Every unit that ends lets those go on who waited for it, and the head of its agent's queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from time import perf_counter_ns
from typing import Final

from msgspec import Struct, field

from agentgate.core.open_wait import Group, OpenWait, UnitFacts
from agentgate.core.waits import Waits
from agentgate.model import Knot, WaitKind

LAYERS: Final = 10
SLOTS: Final = (8, 8, 16, 32)  # concurrency 8, one to four instances
MIX: Final = {"call": 75, "several": 10, "join": 5, "first": 5, "lock": 5}  # what units begin, in percent
ANYWHERE: Final = 0.01  # of all calls
QUEUE_MAX: Final = 60  # calls that wait for an agent
LOCK_LINE_MAX: Final = 8


class Aimed(Struct, eq=False):
    """What a wait is for, set by hand."""

    now: Sequence[Group]

    def groups(self) -> Sequence[Group]:
        """What must come."""
        return self.now


class Desk(Struct, eq=False):
    """An agent: its slots are a pool, before which calls queue."""

    layer: int
    slots: int
    running: dict[str, None] = field(default_factory=dict)
    queue: deque[OpenWait] = field(default_factory=deque)

    def holders(self) -> Sequence[str] | None:
        """Who has its slots, if there is none left."""
        return None if len(self.running) < self.slots else tuple(self.running)


class Worker(Struct, eq=False):
    """A unit that is open."""

    desk: Desk
    waits: int = 0
    awaited_by: list[OpenWait] = field(default_factory=list)


class Traffic:
    """A platform of so many agents; `took_ns` is what each new or changed wait took, with its check."""

    def __init__(self, agents: int, running_min: int, rng: Random) -> None:
        self.waits = Waits()
        self.live_waits = 0
        self.refused = 0
        self.behind = 0
        self.took_ns: list[int] = []
        self._rng = rng
        self._running_min = running_min
        self.running = 0
        self._desks = [Desk(layer=number % LAYERS, slots=rng.choice(SLOTS)) for number in range(agents)]
        self._by_layer = [[desk for desk in self._desks if desk.layer == layer] for layer in range(LAYERS)]
        self._units: dict[str, Worker] = {}
        self._idle: list[str] = []  # running units, and some that are not any more
        self._locks: list[list[str]] = [[] for _ in range(agents)]
        self._names = 0

    def grow(self) -> None:
        """A unit that runs begins to wait for something; root calls see to it that enough units run."""
        while self.running < self._running_min:
            self.arrive()
        unit = self._pick()
        if unit is None:
            return
        [kind] = self._rng.choices(list(MIX), weights=list(MIX.values()))
        if kind == "call":
            self._call(unit)
        elif kind == "several":
            for _ in range(self._rng.randint(2, 5)):
                self._call(unit)
        elif kind == "join":
            self._await(unit, "join", [(other,) for other in self._others(unit, 1)])
        elif kind == "first":
            self._await(unit, "first", [tuple(self._others(unit, self._rng.randint(2, 4)))])
        else:
            self._lock(unit)
        if not self._units[unit].waits:
            self._idle.append(unit)

    def arrive(self) -> None:
        """A root call comes in, at an agent that has room."""
        desk = self._rng.choice(self._desks)
        if desk.holders() is None:
            self._start(desk)

    def shrink(self) -> None:
        """A unit that runs ends; who waited for it goes on, and so does the head of the queue."""
        unit = self._pick()
        if unit is None:
            return
        self.running -= 1
        worker = self._units.pop(unit)
        self.waits.end(unit)
        desk = worker.desk
        del desk.running[unit]
        for wait in worker.awaited_by:
            if wait.unit in self._units and wait in self.waits.of(wait.unit) and self._is_over(wait):
                self._close(wait)
        if desk.queue and desk.holders() is None:
            wait = desk.queue.popleft()
            wait.kind, wait.aim = "call", Aimed([(self._start(desk, wait),)])
            self._check(wait, is_new=False)

    def _call(self, unit: str) -> None:
        layer = self._units[unit].desk.layer
        if self._rng.random() < ANYWHERE:
            desk = self._rng.choice(self._desks)
        elif layer + 1 < LAYERS:
            desk = self._rng.choice(self._by_layer[min(LAYERS - 1, layer + self._rng.choice((1, 1, 1, 2)))])
        else:
            return
        if len(desk.queue) >= QUEUE_MAX:
            return
        wait = OpenWait(unit=unit, kind="call", aim=Aimed([(desk,)]))
        if desk.holders() is None:
            wait.aim = Aimed([(self._start(desk, wait),)])
            self._check(wait)
        elif self._check(wait) is None:
            desk.queue.append(wait)

    def _lock(self, unit: str) -> None:
        line = self._rng.choice(self._locks)
        line[:] = [other for other in line if other in self._units]
        if unit in line or len(line) == LOCK_LINE_MAX:
            return
        if not line or self._await(unit, "lock", [(other,) for other in line]):
            line.append(unit)

    def _await(self, unit: str, kind: WaitKind, groups: Sequence[Group]) -> bool:
        wait = OpenWait(unit=unit, kind=kind, aim=Aimed(groups))
        if self._is_over(wait) or self._check(wait) is not None:
            return False
        for group in groups:
            for member in group:
                assert isinstance(member, str)
                self._units[member].awaited_by.append(wait)
        return True

    def _check(self, wait: OpenWait, *, is_new: bool = True) -> Knot | None:
        began = perf_counter_ns()
        if is_new:
            self.waits.open(wait)
        knot = self.waits.check(wait)
        self.took_ns.append(perf_counter_ns() - began)
        self.behind += wait.behind
        if is_new:
            self.live_waits += 1
            worker = self._units[wait.unit]
            self.running -= not worker.waits
            worker.waits += 1
        if knot is not None:
            self.refused += 1
            self._close(wait)
        return knot

    def _close(self, wait: OpenWait) -> None:
        self.waits.close(wait)
        self.live_waits -= 1
        worker = self._units[wait.unit]
        worker.waits -= 1
        if not worker.waits:
            self._idle.append(wait.unit)
            self.running += 1

    def _start(self, desk: Desk, awaited_by: OpenWait | None = None) -> str:
        self._names += 1
        unit = f"unit-{self._names}"
        self.waits.begin(UnitFacts(unit=unit, agent="a", task_type="t"))
        self._units[unit] = Worker(desk=desk, awaited_by=[] if awaited_by is None else [awaited_by])
        desk.running[unit] = None
        self._idle.append(unit)
        self.running += 1
        return unit

    def _pick(self) -> str | None:
        idle = self._idle
        while idle:
            place = self._rng.randrange(len(idle))
            idle[place], idle[-1] = idle[-1], idle[place]
            worker = self._units.get(unit := idle.pop())
            if worker is not None and not worker.waits:
                return unit
        return None

    def _others(self, unit: str, count: int) -> list[str]:
        """Units that are at work, of deeper layers where it can be."""
        layer = self._units[unit].desk.layer
        found = []
        for _ in range(count if layer + 1 < LAYERS else 0):
            desk = self._rng.choice(self._by_layer[layer + 1])
            found += self._rng.sample(list(desk.running), min(1, len(desk.running)))
        return [other for other in found if other != unit]

    def _is_over(self, wait: OpenWait) -> bool:
        return all(any(member not in self._units for member in group) for group in wait.aim.groups() if group)
