"""Knots: which of the dead are the reason that they are dead, and one way round that a reader can follow.

Decides which units hold one another up. The rules (DESIGN 4.4):

- A dead unit is *in the knot* when it reaches itself through dead nodes. Only groups that are dead count: what is
  satisfied by somebody else holds nobody up. The units that reach one another are the members of one knot.
- A dead unit that does not reach itself is *behind* a knot: it goes on by itself once that is undone.
- The cycle that is shown begins with the unit in question and is a shortest one.

How it works. Of a part of the graph, given as nodes with the groups that hold them up, the strongly connected
components are found by Tarjan's algorithm with a stack of its own, a piece at a time; the cycle breadth first.

Not covered: who is dead (`core.reduction`); what is refused (`core.waits`), and who gives way (`core.victim`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import inf

from agentgate.core.open_wait import Group, OpenWait, UnitFacts
from agentgate.core.reduction import Node, Part
from agentgate.model import Knot, KnotStep, WaitKind


class View:
    """The waits that count, read anew each time: certain ones, or suspected ones too; none begun after `older_than`."""

    __slots__ = ("_older_than", "_suspected", "facts", "waits")

    def __init__(
        self,
        facts: Mapping[str, UnitFacts],
        waits: Mapping[str, Mapping[OpenWait, None]],
        *,
        suspected: bool = False,
        older_than: float = inf,
    ) -> None:
        self.facts = facts
        self.waits = waits
        self._suspected = suspected
        self._older_than = older_than

    def waits_of(self, unit: str) -> list[OpenWait]:
        """Those of the unit's waits that count."""
        suspected, older_than = self._suspected, self._older_than
        return [wait for wait in self.waits.get(unit, ()) if (suspected or wait.certain) and wait.since <= older_than]

    def groups(self, node: Node) -> Sequence[Group]:
        """What the node waits for, as of now."""
        if isinstance(node, str):
            suspected, older_than = self._suspected, self._older_than
            found: Sequence[Group] = ()
            for wait in self.waits.get(node, ()):
                if (suspected or wait.certain) and wait.since <= older_than:
                    groups = wait.aim.groups()
                    found = [*found, *groups] if found else groups
            return found
        if isinstance(node, OpenWait):
            return node.aim.groups()
        holders = node.holders()
        return () if holders is None else (tuple(holders),)


class Tangle:
    """One knot as it stands: its nodes, each with the groups that hold it up. Good until the graph changes next."""

    def __init__(self, view: View, part: Part) -> None:
        self._view = view
        self._part = part

    @property
    def members(self) -> tuple[UnitFacts, ...]:
        """Its units."""
        return tuple(self._view.facts[node] for node in self._part if isinstance(node, str))

    def waits_of(self, unit: str) -> list[OpenWait]:
        """The waits that hold this member in the knot; it goes on when one of them is given up and the others come."""
        inside = self._part.keys()
        return [
            wait
            for wait in self._view.waits_of(unit)
            if any(not inside.isdisjoint(group) for group in self._holding(unit, wait))
        ]

    def knot(self, unit: str, wait: OpenWait | None = None) -> Knot:
        """What is shown of it to one of its members. Its cycle begins with this wait, if it is given."""
        waits = self.waits_of(unit) if wait is None else [wait]
        path = way_round(self._part, unit, [group for one in waits for group in self._holding(unit, one)])
        steps: list[KnotStep] = []
        for node, following in pairwise(path):
            if isinstance(node, str):
                steps.append(self._step(node, following, self.waits_of(node) if steps else waits))
        return Knot(cycle=tuple(steps), members=tuple(facts.unit for facts in self.members))

    def _holding(self, unit: str, wait: OpenWait) -> list[Group]:
        held = self._part[unit]
        return [group for group in wait.aim.groups() if group in held]

    def _step(self, unit: str, following: Node, waits: list[OpenWait]) -> KnotStep:
        wait = next(one for one in waits if any(following in group for group in self._holding(unit, one)))
        facts = self._view.facts[unit]
        return KnotStep(
            unit=unit,
            agent=facts.agent,
            task_type=facts.task_type,
            business_key=facts.business_key,
            kind=_kind(wait, following),
            target=wait.task_type if wait.kind == "signal" else wait.target,
            certain=wait.certain,
            trace_id=wait.trace_id,
            span_id=wait.span_id,
        )


def _kind(wait: OpenWait, following: Node) -> WaitKind:
    """How it waits for this one: of those that a call in a queue waits for, a unit has its exclusive key."""
    if not isinstance(following, str):
        return "slot"
    return "exclusive" if wait.kind == "slot" else wait.kind


def way_round(part: Part, start: Node, first: Sequence[Group]) -> list[Node]:
    """A shortest way from a member of a knot back to it, both ends named, that begins with one of these groups."""
    came_from: dict[Node, Node] = {}
    row: deque[tuple[Node, Sequence[Group]]] = deque([(start, first)])
    while start not in came_from:
        node, groups = row.popleft()
        for member in chain.from_iterable(groups):
            if member in part and member not in came_from:
                came_from[member] = node
                row.append((member, part[member]))
    path = [start, came_from[start]]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def components(part: Part) -> Iterator[list[Node] | None]:
    """The strongly connected components of a part, a piece of work at a time; None is a piece without a result.

    Members outside of the part do not count.
    """
    found: dict[Node, int] = {}  # in which order
    earliest: dict[Node, int] = {}  # that a node reaches, while its component is incomplete
    incomplete: list[Node] = []
    path: list[Node] = []
    ahead: list[Iterator[Node]] = [iter(part)]
    while ahead:
        following = next(ahead[-1], None)
        if following is None:
            ahead.pop()
            if path:
                node = path.pop()
                if path:
                    earliest[path[-1]] = min(earliest[path[-1]], earliest[node])
                if earliest[node] == found[node]:
                    yield _completed(node, incomplete, earliest)
        elif following in earliest:
            earliest[path[-1]] = min(earliest[path[-1]], found[following])
        elif following in part and following not in found:
            found[following] = earliest[following] = len(found)
            incomplete.append(following)
            path.append(following)
            ahead.append(chain.from_iterable(part[following]))
        yield None


def _completed(node: Node, incomplete: list[Node], earliest: dict[Node, int]) -> list[Node]:
    component = [incomplete.pop()]
    while component[-1] != node:
        component.append(incomplete.pop())
    for member in component:
        del earliest[member]
    return component
