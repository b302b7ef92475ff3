"""Who can still get on: the and/or reduction, begun where somebody asks and done no further than the answer needs.

Decides whether a node (a unit, a pool, or a wait that is asked about) is *live*. The rule is a least fixpoint (DESIGN
4.4): a node is live when it waits for nothing, or when of every group it waits for at least one member is live. What is
not live when everything that matters has been looked at is *dead*: it cannot get on by itself.

How it works. Depth first: a node is opened into *branches*, one a group, and the branch on top of the stack opens its
next member when the one before has been looked at and is not live so far. A member that turns out live closes all
branches that listen to it; a node without open branches is live, and so on upwards. Nothing is looked at twice, so it
is linear in what is reached, and it may stop after any node and go on later. Members of a larger group are glanced at
first: mostly one of them is simply running, and then no other has to be opened.

The answer is exact when the graph stood still meanwhile. When it changed between two pieces of work, what was read is a
mixture of moments; but nodes that held one another up whenever they were read still come out dead.

Not covered: which of the dead are the reason (`core.knots`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from agentgate.core.open_wait import Group, Member, OpenWait

Node: TypeAlias = Member | OpenWait
Part: TypeAlias = dict[Node, list[Group]]  # nodes, each with groups that hold it up


class _Undecided(Struct, eq=False):
    """A node that is not known to be live: what it waits for, of how many groups nobody is live, and who listens."""

    node: Node
    groups: list[Group]
    missing: int
    listeners: list[_Branch]


class _Branch(Struct, eq=False):
    """A group on behalf of its owner, of which `at` members have been begun; closed when one of them is live."""

    owner: _Undecided
    group: Group
    at: int = 0
    closed: bool = False


class Reduction:
    """Nodes that were looked at, and what is known of them.

    `read` gives the groups of a node; a unit that is not in `known` has none. `goal`, if given, is the one node that is
    asked about: everything stops when it is live.
    """

    __slots__ = ("_closing", "_goal", "_known", "_read", "_stack", "_undecided", "live", "work")

    def __init__(
        self, read: Callable[[Node], Iterable[Group]], known: Container[object], goal: Node | None = None
    ) -> None:
        self._read = read
        self._known = known
        self._goal = goal
        self._stack: list[_Branch] = []
        self._closing: list[_Branch] = []
        self._undecided: dict[Node, _Undecided] = {}
        self.live: set[Node] = set()
        self.work = 0  # nodes that were opened, and groups and members that were read of them
        if goal is not None:
            self.begin(goal)

    @property
    def pending(self) -> bool:
        """Whether there is more to look at."""
        return bool(self._stack or self._closing)

    def begin(self, node: Node) -> None:
        """Ask about this node as well."""
        if node not in self.live and node not in self._undecided:
            self._open(node)

    def advance(self, steps_max: int) -> None:
        """Go on, until nothing is pending or for so many steps; a step opens one node at most."""
        stack, closing = self._stack, self._closing
        for _ in range(steps_max):
            if closing:
                self._close(closing.pop())
            elif stack:
                self._visit(stack[-1])
            else:
                return

    def dead(self) -> Iterator[tuple[Node, list[Group]]]:
        """Once nothing is pending: the dead, each with the groups that hold it up, of which no member is live."""
        live = self.live
        for node, undecided in self._undecided.items():
            yield node, [group for group in undecided.groups if live.isdisjoint(group)]

    def _open(self, node: Node) -> _Undecided | None:
        """Begin with a node; None: it is live, as far as a glance tells."""
        self.work += 1
        known = self._known
        groups = []
        for group in self._read(node):
            self.work += 1
            for member in group:
                if member not in known and type(member) is str:
                    break  # a running unit: this group asks for nothing more
            else:
                if group:
                    self.work += len(group)
                    groups.append(group)
        if not groups:
            self.live.add(node)
            return None
        opened = self._undecided[node] = _Undecided(node, groups, len(groups), [])
        for group in groups:
            self._stack.append(_Branch(opened, group))
        return opened

    def _visit(self, branch: _Branch) -> None:
        """The branch on top of the stack begins its next member, if it still has to."""
        group, at = branch.group, branch.at
        branch.at = at + 1
        if branch.closed or at + 1 == len(group):
            self._stack.pop()
            if branch.closed:
                return
        member = group[at]
        if member not in self.live:
            undecided = self._undecided.get(member) or self._open(member)
            if undecided is not None:
                undecided.listeners.append(branch)
                return
        self._closing.append(branch)

    def _close(self, branch: _Branch) -> None:
        """A member of the branch is live; if it was the last branch of its owner, so is the owner."""
        if branch.closed:
            return
        branch.closed = True
        owner = branch.owner
        owner.missing -= 1
        if owner.missing:
            return
        del self._undecided[owner.node]
        self.live.add(owner.node)
        self._closing += owner.listeners
        if owner.node is self._goal:
            self._stack.clear()
            self._closing.clear()
