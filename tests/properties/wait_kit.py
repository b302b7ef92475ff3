"""Small wait graphs, and what is true of them, found by trying."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from agentgate.core.open_wait import Group, Member, OpenWait, UnitFacts
from agentgate.core.wait_scan import Scan
from agentgate.core.waits import Waits
from agentgate.model import Knot


@dataclass(eq=False)
class Slots:
    """A pool; None: there is room."""

    held: list[str] | None = None

    def holders(self) -> Sequence[str] | None:
        return self.held


@dataclass(eq=False)
class At:
    """An aim that is set by hand."""

    now: list[Group] = field(default_factory=list)

    def groups(self) -> Sequence[Group]:
        return self.now


class Graph:
    """Open units and their waits, in the graph under test and in a plain list beside it."""

    def __init__(self, *units: str) -> None:
        self.waits = Waits()
        self.units: set[str] = set()
        self.open: list[OpenWait] = []
        for unit in units:
            self.begin(unit)

    def begin(self, unit: str) -> None:
        self.units.add(unit)
        self.waits.begin(UnitFacts(unit=unit, agent=f"agent of {unit}", task_type="t"))

    def end(self, unit: str) -> None:
        self.units.discard(unit)
        self.open = [wait for wait in self.open if wait.unit != unit]
        self.waits.end(unit)

    def wait(self, unit: str, *groups: Group, certain: bool = True, since: float = 0.0) -> OpenWait:
        wait = OpenWait(unit=unit, kind="call", aim=At(list(groups)), certain=certain, since=since)
        self.waits.open(wait)
        if unit in self.units:
            self.open.append(wait)
        return wait

    def close(self, wait: OpenWait) -> None:
        self.open.remove(wait)
        self.waits.close(wait)

    def scan(self, older_than: float = 0.0, budget: int = 1_000) -> list[frozenset[str]]:
        """The members of each knot that a scan finds, while the graph stands still."""
        scan = Scan(self.waits, older_than)
        found = []
        while not scan.done:
            tangle = scan.step(budget)
            if tangle is not None:
                found.append(frozenset(facts.unit for facts in tangle.members))
        return found


class Truth:
    """The oracle: everything is tried until nothing changes. `waits` are those that count."""

    def __init__(self, units: Iterable[str], waits: Iterable[OpenWait]) -> None:
        self.units = set(units)
        self.waits = list(waits)
        self.live: set[str] = set()
        while found := {unit for unit in self.units - self.live if all(self.comes(g) for g in self.groups(unit))}:
            self.live |= found
        self.dead = self.units - self.live

    def groups(self, unit: str) -> Iterator[Group]:
        return (group for wait in self.waits if wait.unit == unit for group in wait.aim.groups())

    def is_live(self, member: Member) -> bool:
        if isinstance(member, str):
            return member not in self.units or member in self.live
        return not member.holders() or any(self.is_live(unit) for unit in member.holders() or ())

    def comes(self, group: Group) -> bool:
        return not group or any(self.is_live(member) for member in group)

    def after(self, groups: Iterable[Group]) -> set[str]:
        """The dead units that are reached through groups that do not come."""
        reached: set[str] = set()
        row = [unit for group in groups if not self.comes(group) for unit in units_of(group)]
        while row:
            unit = row.pop()
            if unit not in reached:
                reached.add(unit)
                row += [unit for group in self.groups(unit) if not self.comes(group) for unit in units_of(group)]
        return reached

    def closes(self, wait: OpenWait) -> bool:
        """Whether this wait puts its unit in a knot."""
        return wait.unit in self.after(wait.aim.groups())

    def knot(self, unit: str) -> set[str]:
        """All that the unit reaches and that reach the unit."""
        return {other for other in self.after(self.groups(unit)) if unit in self.after(self.groups(other))}

    def stands(self, members: frozenset[str]) -> bool:
        """Whether these units hold one another up whatever becomes of the others, and each of them reaches each."""
        inside = {
            unit: [group for group in self.groups(unit) if group and set(units_of(group)) <= members and real(group)]
            for unit in members
        }
        if not all(inside.values()):
            return False
        reached = {start: {start} for start in members}
        for _ in members:
            for seen in reached.values():
                seen |= {unit for near in set(seen) for group in inside[near] for unit in units_of(group)}
        around = {
            start: any(start in units_of(group) for near in reached[start] for group in inside[near])
            for start in members
        }
        return all(seen == members for seen in reached.values()) and all(around.values())

    def standing(self) -> set[frozenset[str]]:
        """The largest such sets."""
        dead = sorted(self.dead)
        sets = (frozenset(some) for size in range(len(dead), 0, -1) for some in combinations(dead, size))
        largest: set[frozenset[str]] = set()
        for some in sets:
            if not any(some <= other for other in largest) and self.stands(some):
                largest.add(some)
        return largest


def real(group: Group) -> bool:
    """Whether every pool of the group is full."""
    return all(isinstance(member, str) or member.holders() for member in group)


def units_of(group: Group) -> Iterator[str]:
    """The units a group may be brought by, holders of its pools included."""
    for member in group:
        if isinstance(member, str):
            yield member
        else:
            yield from member.holders() or ()


def check_cycle(knot: Knot, truth: Truth) -> None:
    """The cycle is one: each of its units waits for the next, by a group that does not come; none is named twice."""
    units = [step.unit for step in knot.cycle]
    assert len(set(units)) == len(units) > 0
    assert set(units) <= set(knot.members)
    for unit, following in zip(units, [*units[1:], units[0]], strict=True):
        assert any(following in units_of(group) for group in truth.groups(unit) if not truth.comes(group))
