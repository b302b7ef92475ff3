"""The timer's scan while the graph changes under it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.core.open_wait import Group, Member, OpenWait
from agentgate.core.wait_scan import Scan
from tests.properties.wait_kit import At, Graph, Slots, Truth, check_cycle

UNITS = [f"u{number}" for number in range(6)]


class Changing:
    """A graph that a test changes at random, and what was changed in it."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.graph = Graph(*UNITS)
        self.pools = [Slots(), Slots()]
        self.touched: set[Member] = set()
        for _ in range(data.draw(st.integers(3, 10))):
            self.begin_wait()
        for pool in self.pools:
            self.fill(pool)

    def group(self) -> Group:
        members: list[Member] = [*UNITS, *self.pools]
        return tuple(self.data.draw(st.lists(st.sampled_from(members), min_size=1, max_size=3, unique_by=id)))

    def begin_wait(self) -> None:
        unit = self.data.draw(st.sampled_from(UNITS))
        self.touched.add(unit)
        certain = self.data.draw(st.booleans())
        since = self.data.draw(st.sampled_from([0.0, 0.0, 0.0, 2.0]))
        self.graph.wait(unit, self.group(), certain=certain, since=since)

    def fill(self, pool: Slots) -> None:
        self.touched.add(pool)
        pool.held = self.data.draw(st.none() | st.lists(st.sampled_from(UNITS), max_size=3, unique=True))

    def change(self) -> None:
        what = self.data.draw(st.sampled_from(["nothing", "begin", "close", "aim", "end", "fill"]))
        if what == "begin":
            self.begin_wait()
        elif what == "fill":
            self.fill(self.data.draw(st.sampled_from(self.pools)))
        elif what == "end":
            unit = self.data.draw(st.sampled_from(UNITS))
            self.touched.add(unit)
            self.graph.end(unit)
        elif what != "nothing" and self.graph.open:
            wait = self.data.draw(st.sampled_from(self.graph.open))
            self.touched.add(wait.unit)
            if what == "close":
                self.graph.close(wait)
            else:
                wait.aim = At([self.group()])

    def counted(self, older_than: float) -> list[OpenWait]:
        return [wait for wait in self.graph.open if wait.since <= older_than]

    def truth(self, older_than: float = 1.0) -> Truth:
        return Truth(self.graph.units, self.counted(older_than))

    def nodes_of(self, knot: frozenset[str]) -> set[Member]:
        """A knot's units, and every pool that one of them waits for."""
        pools = {m for u in knot for g in self.truth().groups(u) for m in g if not isinstance(m, str)}
        return {*knot, *pools}


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_what_stands_throughout_is_found_and_nothing_else(data: st.DataObject) -> None:
    """D2, F67 to F71: a knot that stood still during the scan is found; each one reported is true at that moment."""
    changing = Changing(data)
    at_first = {knot: changing.nodes_of(knot) for knot in changing.truth().standing()}
    changing.touched.clear()
    reported: list[frozenset[str]] = []
    scan = Scan(changing.graph.waits, older_than=1.0)
    while not scan.done:
        tangle = scan.step(data.draw(st.sampled_from([1, 5, 40])))
        if tangle is not None:
            truth = changing.truth()
            members = frozenset(facts.unit for facts in tangle.members)
            assert truth.stands(members)
            reported.append(members)
            for unit in members:
                assert unit in truth.knot(unit)
                assert tangle.waits_of(unit)
                check_cycle(tangle.knot(unit), truth)
        changing.change()
    for knot, nodes in at_first.items():
        assert not nodes.isdisjoint(changing.touched) or any(knot <= members for members in reported)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_graph_that_stays_acyclic_raises_nothing(data: st.DataObject) -> None:
    """F67: however waits come, go and change their aim, as long as everybody waits for somebody later, all is quiet."""
    units = [f"u{number}" for number in range(12)]
    graph = Graph(*units)
    for unit in units[:-1]:
        graph.wait(unit, (units[-1],))
    scan = Scan(graph.waits, older_than=0.0)
    while not scan.done:
        assert scan.step(1) is None
        wait = data.draw(st.sampled_from(graph.open))
        later = units[units.index(wait.unit) + 1 :]
        wait.aim = At([tuple(data.draw(st.lists(st.sampled_from(later), min_size=1, max_size=2)))])
