"""The wait graph by example: what is a deadlock, what only looks like one, and what is said of it."""

from __future__ import annotations

import pytest

from agentgate.core.open_wait import OpenWait, UnitFacts
from agentgate.core.waits import WAITS_MAX, WORK_MAX, Waits
from tests.properties.wait_kit import At, Graph, Slots


def chain_of(length: int) -> tuple[Graph, OpenWait]:
    """Units that wait for one another in a row, and the wait of the first."""
    graph = Graph(*(f"u{number}" for number in range(length + 1)))
    waits = [graph.wait(f"u{number}", (f"u{number + 1}",)) for number in range(length)]
    return graph, waits[0]


def test_a_cycle_is_named_before_it_is_closed() -> None:
    """D1, D3: the wait that would close a cycle is found before it begins, with everything that a reader needs."""
    waits = Waits()
    for unit, agent in (("u1", "orders"), ("u2", "stock")):
        waits.begin(UnitFacts(unit=unit, agent=agent, task_type=f"of {agent}", business_key="o-1"))
    waits.open(OpenWait(unit="u1", kind="call", aim=At([("u2",)]), trace_id="t", span_id="s1"))
    knot = waits.check(OpenWait(unit="u2", kind="lock", aim=At([("u1",)]), trace_id="t", span_id="s2"))
    assert knot is not None
    assert [(step.unit, step.agent, step.task_type, step.business_key, step.kind) for step in knot.cycle] == [
        ("u2", "stock", "of stock", "o-1", "lock"),
        ("u1", "orders", "of orders", "o-1", "call"),
    ]
    assert [(step.trace_id, step.span_id) for step in knot.cycle] == [("t", "s2"), ("t", "s1")]
    assert knot.certain
    assert sorted(knot.members) == ["u1", "u2"]
    assert waits.of("u2") == ()


def test_a_diamond_is_no_cycle() -> None:
    """DESIGN 4.4: two ways to one unit, with all of them waiting, are fine."""
    graph = Graph("a", "b", "c", "d")
    waits = [graph.wait("a", ("b",), ("c",)), graph.wait("b", ("d",)), graph.wait("c", ("d",))]
    assert [graph.waits.check(wait) for wait in waits] == [None] * 3
    assert not any(wait.behind for wait in waits)


def test_behind_a_knot_is_admitted_and_marked() -> None:
    """DESIGN 4.4: whoever waits for a member of a knot is not in it; the mark goes when the knot is undone."""
    graph = Graph("a", "b", "c")
    graph.wait("b", ("c",))
    closing = graph.wait("c", ("b",))
    lasso = graph.wait("a", ("b",))
    assert graph.waits.check(lasso) is None
    assert lasso.behind
    graph.close(closing)
    assert graph.waits.check(lasso) is None
    assert not lasso.behind


def test_a_wait_is_not_blamed_for_another_one() -> None:
    """D3: a unit that is in a knot by one wait may begin another that has nothing to do with it."""
    graph = Graph("a", "b", "c")
    graph.wait("b", ("a",))
    knotted = graph.wait("a", ("b",))
    beside = graph.wait("a", ("c",))
    assert graph.waits.check(knotted) is not None
    assert graph.waits.check(beside) is None
    assert not beside.behind


@pytest.mark.parametrize("held", [None, []], ids=["room", "nobody there"])
def test_who_may_come_any_time_is_no_deadlock(held: list[str] | None) -> None:
    """DESIGN 4.4: re-entry into an agent with a free slot, and an agent without instances, raise nothing."""
    graph = Graph("a", "b")
    slots = Slots(held)
    graph.wait("b", ("a",))
    assert graph.waits.check(graph.wait("a", (slots,))) is None
    slots.held = ["b"]
    knot = graph.waits.check(graph.open[-1])
    assert knot is not None
    assert [(step.unit, step.kind) for step in knot.cycle] == [("a", "slot"), ("b", "call")]


def test_a_pool_is_dead_when_all_its_holders_wait() -> None:
    """F66: eight units of A before B's slots and eight of B before A's are one knot, at the very last wait."""
    first, second = [f"a{number}" for number in range(8)], [f"b{number}" for number in range(8)]
    graph = Graph(*first, *second)
    pools = Slots(first), Slots(second)
    waits = [graph.wait(unit, (pools[1],)) for unit in first]
    waits += [graph.wait(unit, (pools[0],)) for unit in second[:-1]]
    assert [graph.waits.check(wait) for wait in waits] == [None] * 15
    assert graph.scan() == []
    knot = graph.waits.check(graph.wait(second[-1], (pools[0],)))
    assert knot is not None
    assert knot.cycle[0].unit == "b7"
    assert len(knot.cycle) == 2
    assert sorted(knot.members) == first + second
    assert graph.scan() == [frozenset(first + second)]


def test_a_suspected_wait_refuses_nobody() -> None:
    """DESIGN 4.4: a cycle with a signal in it passes the check, from either side; the timer sees it."""
    graph = Graph("a", "b")
    signal = graph.wait("a", ("b",), certain=False)
    call = graph.wait("b", ("a",))
    assert graph.waits.check(signal) is None
    assert graph.waits.check(call) is None
    assert graph.scan() == [frozenset("ab")]


def test_a_long_chain_raises_nothing() -> None:
    """D2: a chain of 5 000 is looked through without recursion and found well."""
    graph, first = chain_of(5_000)
    assert graph.waits.check(first) is None
    assert graph.waits.left == 0
    assert graph.scan() == []


def test_what_reaches_too_far_is_left_to_the_timer() -> None:
    """D2: a check does bounded work and no more; what it did not see is counted, and the scan finds it."""
    graph, _ = chain_of(WORK_MAX // 3)
    graph.begin("a")
    graph.wait("u0", ("a",))
    assert graph.waits.check(graph.wait("a", ("u0",))) is None
    assert graph.waits.left == 1
    assert graph.scan() == [frozenset({"a", "u0"})]


def test_waits_with_many_holders_are_bounded_by_what_is_read() -> None:
    """D2: not only nodes cost time: 400 units that each wait for all before them are left to the timer."""
    units = [f"u{number}" for number in range(400)]
    graph = Graph(*units)
    for number, unit in enumerate(units):
        graph.wait(unit, *((other,) for other in units[:number]))
    graph.begin("a")
    graph.wait("u0", ("a",))
    graph.wait("a", (units[-1],))
    assert graph.waits.check(graph.waits.of(units[-1])[0]) is None
    assert graph.waits.left == 1
    assert graph.scan() == [frozenset(["a", *units])]


def test_who_is_not_open_waits_for_nothing() -> None:
    """Contract: a unit that has ended counts as come, and its waits are not kept."""
    graph = Graph("a")
    late = graph.wait("gone", ("a",))
    mine = graph.wait("a", ("gone",))
    assert graph.waits.check(late) is None
    assert graph.waits.check(mine) is None
    assert graph.waits.of("gone") == ()
    graph.end("a")
    graph.waits.end("a")
    graph.waits.close(mine)
    assert len(graph.waits) == 0
    assert graph.waits.all() == []


def test_a_unit_that_begins_anew_keeps_its_waits() -> None:
    """A unit that is found running after a reconnect is known by what is said last."""
    graph = Graph("a")
    wait = graph.wait("a", ("b",))
    graph.waits.begin(UnitFacts(unit="a", agent="renamed", task_type="t"))
    assert graph.waits.of("a") == (wait,)
    facts = graph.waits.facts("a")
    assert facts is not None
    assert facts.agent == "renamed"


def test_the_waits_of_a_unit_are_bounded() -> None:
    """Invariant 10: what a unit opens beyond the bound is not kept, and closing it does no harm."""
    graph = Graph("a", "b")
    waits = [graph.wait("a", ("b",)) for _ in range(WAITS_MAX + 1)]
    assert graph.waits.of("a") == tuple(waits[:-1])
    graph.waits.close(waits[-1])
    graph.waits.close(waits[0])
    graph.waits.close(waits[0])
    assert len(graph.waits.of("a")) == WAITS_MAX - 1


def test_waits_are_listed_and_numbered_as_they_open() -> None:
    """D1, H2: every wait has a number of its own, and the graph says how many edges it has."""
    graph = Graph("a", "b")
    waits = [graph.wait(unit, (other,)) for unit, other in (("a", "b"), ("b", "gone"), ("a", "b"))]
    assert graph.waits.all() == [waits[0], waits[2], waits[1]]
    assert [wait.number for wait in waits] == [1, 2, 3]
    assert graph.waits.edges == 3
    graph.close(waits[0])
    again = graph.wait("a", ("b",))
    assert (again.number, graph.waits.edges) == (4, 3)
