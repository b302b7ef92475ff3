"""The wait graph against an oracle that tries everything: small graphs all of them, larger ones at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, product
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentgate.core.open_wait import Group, Member, OpenWait
from tests.properties.wait_kit import At, Graph, Slots, Truth, check_cycle

UNITS = ("a", "b", "c", "d")


def subsets(members: Sequence[str]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(members, size) for size in range(len(members) + 1)))


def graphs_of(choices: Sequence[Sequence[tuple[Group, ...]]]) -> Iterator[tuple[Graph, list[OpenWait]]]:
    """Every graph in which each unit has one wait, for one of its choices of groups."""
    graph = Graph(*UNITS[: len(choices)])
    waits = [graph.wait(unit) for unit in UNITS[: len(choices)]]
    for chosen in product(*choices):
        for wait, groups in zip(waits, chosen, strict=True):
            wait.aim = At(list(groups))
        yield graph, waits


def agrees(graph: Graph, waits: Sequence[OpenWait]) -> None:
    """Checks of these waits say what is true, and a knot that is named is the whole knot."""
    truth = Truth(graph.units, [wait for wait in graph.open if wait.certain])
    for wait in waits:
        knot = graph.waits.check(wait)
        if not wait.certain:
            assert knot is None
            continue
        closes = truth.closes(wait)
        assert (knot is not None) == closes
        assert wait.behind == (not closes and not all(truth.comes(group) for group in wait.aim.groups()))
        if knot is not None:
            assert knot.cycle[0].unit == wait.unit
            assert set(knot.members) == truth.knot(wait.unit)
            check_cycle(knot, truth)


def test_every_graph_of_single_edges() -> None:
    """D1, D2: all graphs in which four units wait for some of one another, or for themselves.

    The wait that is checked is that of the first unit; the others stand in order of how many they wait for, because
    graphs that differ in their names only are the same.
    """
    for graph, waits in graphs_of([[tuple((one,) for one in some) for some in subsets(UNITS)]] * 4):
        counts = [len(wait.aim.groups()) for wait in waits[1:]]
        if counts == sorted(counts):
            agrees(graph, waits[:1])


def test_every_graph_of_alternatives() -> None:
    """DESIGN 4.4: all graphs of four units with one or-group each, and of three with up to two groups each."""
    for graph, waits in graphs_of([[(some,) for some in subsets([u for u in UNITS if u != mine])] for mine in UNITS]):
        agrees(graph, waits[:1])
        assert set(graph.scan()) == Truth(graph.units, graph.open).standing()
    groups = subsets(UNITS[:3])[1:]
    choices: list[tuple[Group, ...]] = [some for size in range(3) for some in combinations(groups, size)]
    for graph, waits in graphs_of([choices] * 3):
        agrees(graph, waits[:1])


class WaitHistory(RuleBasedStateMachine):
    """Units begin and end, wait and go on, and pools fill and empty; after each change all that is said is true."""

    @initialize()
    def begin_with(self) -> None:
        self.graph = Graph(*UNITS[:3])
        self.pools = [Slots(), Slots()]

    @property
    def members(self) -> st.SearchStrategy[Member]:
        return st.sampled_from([*UNITS, "f", *self.pools])

    def groups(self, data: st.DataObject) -> list[Group]:
        group = st.lists(self.members, max_size=3).map(tuple)
        return data.draw(st.lists(st.one_of(self.members.map(lambda one: (one,)), group), max_size=2))

    @rule(unit=st.sampled_from(UNITS), opens=st.booleans())
    def turn(self, unit: str, opens: bool) -> None:
        if opens:
            self.graph.begin(unit)
        else:
            self.graph.end(unit)

    @rule(data=st.data(), unit=st.sampled_from(UNITS), certain=st.sampled_from([True, True, False]))
    def wait(self, data: st.DataObject, unit: str, certain: bool) -> None:
        """A wait is asked about before it is opened, then after; both answers are the same."""
        groups = self.groups(data)
        before = OpenWait(unit=unit, kind="call", aim=At(groups), certain=certain)
        told = self.graph.waits.check(before)
        after = self.graph.wait(unit, *groups, certain=certain)
        assert (told is None) == (self.graph.waits.check(after) is None)
        assert before.behind == after.behind

    @precondition(lambda self: self.graph.open)
    @rule(data=st.data(), ends=st.booleans())
    def change(self, data: st.DataObject, ends: bool) -> None:
        wait = data.draw(st.sampled_from(self.graph.open))
        if ends:
            self.graph.close(wait)
            self.graph.waits.close(wait)
        else:
            wait.aim = At(self.groups(data))

    @rule(data=st.data(), held=st.none() | st.lists(st.sampled_from(UNITS), max_size=3, unique=True))
    def fill(self, data: st.DataObject, held: list[str] | None) -> None:
        data.draw(st.sampled_from(self.pools)).held = held

    @invariant()
    def everything_said_is_true(self) -> None:
        agrees(self.graph, self.graph.open)
        found = self.graph.scan(budget=7)
        assert len(found) == len(set(found))
        assert set(found) == Truth(self.graph.units, self.graph.open).standing()


TestWaitHistory = WaitHistory.TestCase
TestWaitHistory.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)


def test_no_alarm_without_a_cycle() -> None:
    """D2, F71: ten thousand acyclic snapshots, with and-lists, alternatives and full pools, raise nothing."""
    rng = Random(71)
    for _ in range(10_000):
        units = [f"u{number}" for number in range(rng.randint(2, 9))]
        graph = Graph(*units)
        for number, unit in enumerate(units[:-1]):
            later: list[Member] = [*units[number + 1 :], Slots(rng.sample(units[number + 1 :], 1)), Slots()]
            for _ in range(rng.randint(0, 2)):
                graph.wait(unit, *(tuple(rng.sample(later, rng.randint(1, 2))) for _ in range(rng.randint(1, 2))))
        for wait in graph.open:
            assert graph.waits.check(wait) is None
            assert not wait.behind
        assert graph.scan() == []
