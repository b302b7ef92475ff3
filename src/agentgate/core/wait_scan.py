"""The timer's look at the whole wait graph: every knot that stands, and never one that does not.

Decides which knots are reported. The rules (DESIGN 4.4, D2, D3):

- All waits count that are older than a period, suspected ones too: what is young mostly ends by itself.
- A knot is reported when its members hold one another up whatever becomes of everybody else. What is dead only because
  of another knot is left until that is undone: each knot has one victim.
- It is confirmed on fresh data, in one piece, right before it is reported; so there is no false alarm, however the
  graph changes meanwhile. Every knot that stands still during a whole scan is found in it.
- What it finds it finds again next time, as long as it stands: nothing depends on who saw a knot first.

How it works. A scan does bounded work a step; between two steps the graph may change.

1. Read every wait once and reduce (`core.reduction`): what held itself up throughout is among the dead.
2. Take a part that holds itself up, at first all the dead. If it is not strongly connected, go on with each of its
   components, reduced as if everybody outside were live; what is left is smaller.
3. If it is, read it again, in one piece. If all its groups are still there, it is a knot: dead now, and each of its
   members reaches itself. Otherwise go on with the groups that are. Parts only shrink, so it ends.

A part of more than `CONFIRM_MAX` nodes cannot be read in one piece in time. Then one group of each node has to do,
which mostly leaves a small part; if it does not, the part is given up and counted.

Not covered: how often, how long a step may take, and who is told (`control`); who gives way (`core.victim`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import chain
from typing import Final

from agentgate.core.knots import Tangle, components
from agentgate.core.open_wait import Group
from agentgate.core.reduction import Node, Part, Reduction
from agentgate.core.waits import Waits

CONFIRM_MAX: Final = 5_000  # nodes: some 3 ms
CHUNK: Final = 32  # nodes or edges done between two looks at the budget


class Scan:
    """One look at all waits begun at `older_than` or before.

    `too_large` counts the parts that were given up, `phantoms` those that looked like a knot and were none on fresh
    data. `dead` are the units and pools that could not get on when they were read: of all knots, and behind them.
    """

    def __init__(self, waits: Waits, older_than: float, confirm_max: int = CONFIRM_MAX) -> None:
        self._view = waits.view(older_than=older_than)
        self._confirm_max = confirm_max
        self._parts: list[Part] = []
        self._found: Tangle | None = None
        self._work = self._all()
        self._cost = 0  # of the next piece
        self.too_large = 0
        self.phantoms = 0
        self.dead: frozenset[Node] = frozenset()
        self.done = False

    def step(self, budget: int) -> Tangle | None:
        """Do about `budget` nodes' worth of work, one piece at least; stop at a knot, to be acted on at once."""
        left = budget
        while not self.done and (self._cost <= left or left == budget):
            left -= self._cost
            cost = next(self._work, None)
            self.done, self._cost = cost is None, cost or 0
            if self._found is not None:
                found, self._found = self._found, None
                return found
        return None

    def _all(self) -> Iterator[int]:
        """All there is to do; what is yielded is the cost of the next piece."""
        view = self._view
        yield from self._keep_dead(list(view.waits), view.groups, view.waits)
        self.dead = frozenset(chain.from_iterable(self._parts))
        while self._parts:
            part = self._parts.pop()
            for nodes in components(part):
                if nodes is None:
                    yield 1
                elif len(nodes) == len(part):
                    yield from self._confirm(part)
                elif len(nodes) > 1 or any(nodes[0] in group for group in part[nodes[0]]):
                    yield from self._keep_standing({node: part[node] for node in nodes})

    def _confirm(self, part: Part) -> Iterator[int]:
        """Read a part again that is strongly connected and holds itself up."""
        if len(part) > self._confirm_max:
            if all(len(groups) == 1 for groups in part.values()):
                self.too_large += 1
            else:
                self._parts.append({node: groups[:1] for node, groups in part.items()})
            return
        yield len(part)
        kept = {node: self._still(node, groups) for node, groups in part.items()}
        if kept == part:
            self._found = Tangle(self._view, part)
        else:
            self.phantoms += 1
            yield from self._keep_standing(kept)

    def _still(self, node: Node, groups: list[Group]) -> list[Group]:
        fresh = self._view.groups(node)
        return [group for group in groups if group in fresh]

    def _keep_standing(self, part: Part) -> Iterator[int]:
        """Go on with what holds itself up in a part of the graph, as if everybody outside were live."""
        yield from self._keep_dead(list(part), lambda node: part.get(node, ()), part)

    def _keep_dead(
        self, nodes: list[Node] | list[str], read: Callable[[Node], Sequence[Group]], known: Container[object]
    ) -> Iterator[int]:
        reduction = Reduction(read, known)
        for begun in range(0, len(nodes), CHUNK):
            yield CHUNK
            for node in nodes[begun : begun + CHUNK]:
                reduction.begin(node)
            while reduction.pending:
                yield CHUNK
                reduction.advance(CHUNK)
        dead: Part = {}
        for node, groups in reduction.dead():
            dead[node] = groups
            yield 1
        if dead:
            self._parts.append(dead)
