"""What is said about knots, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from agentgate.core.deadlock import ASK_LESS, STEPS_SHOWN, WAYS_OUT, cycle_text, refused, released, way_out
from agentgate.core.deadlocks import Deadlocks
from agentgate.core.open_wait import Group, OpenWait
from agentgate.model import Knot, KnotStep, WaitKind, problem


class Nothing:
    """An aim that is outside."""

    def groups(self) -> Sequence[Group]:
        return ()


def wait(unit: str, since: float = 0.0, deadline: float = 30.0) -> OpenWait:
    return OpenWait(unit=unit, kind="call", aim=Nothing(), since=since, deadline=deadline)


def knot(length: int) -> Knot:
    steps = tuple(
        KnotStep(
            unit=f"u{number}",
            agent=f"a{number}",
            task_type="do",
            business_key="o1",
            kind="call",
            certain=True,
            trace_id="t",
            span_id=f"s{number}",
        )
        for number in range(length)
    )
    return Knot(cycle=steps, members=tuple(step.unit for step in steps))


def test_a_cycle_is_told_by_what_its_reader_knows() -> None:
    """D3: agent, task type and business key of each, back to the first; nothing of units."""
    assert cycle_text(knot(2)) == "a0.do(o1) > a1.do(o1) > a0.do(o1)"
    for told in (refused(knot(2)), released(knot(2))):
        assert told.code == "deadlock"
        assert cycle_text(knot(2)) in told.detail


@pytest.mark.parametrize(
    ("kind", "target", "words"),
    [
        ("slot", "a1", "queues for a slot"),
        ("exclusive", "a1", "queues for its exclusive key"),
        ("join", "a1", "has joined the same key"),
        ("lock", "shelf_1", "lock 'shelf_1'"),
        ("signal", "left.done", "signal 'left.done'"),
        ("first", "a1, a2", "the first of several"),
    ],
)
def test_a_cycle_says_what_each_waits_on_and_what_to_do_about_that(kind: WaitKind, target: str, words: str) -> None:
    """D3: the name of a lock or a signal is what its reader looks for; the advice is about that kind."""
    first, second = knot(2).cycle
    told = Knot(cycle=(replace(first, kind=kind, target=target), second), members=("u0", "u1"))
    assert cycle_text(told) == f"a0.do(o1): {words} > a1.do(o1) > a0.do(o1)"
    assert way_out(told) == WAYS_OUT.get(kind, ASK_LESS)


def test_the_advice_is_about_every_kind_in_the_cycle() -> None:
    """D3: who holds a lock while another waits for a signal has two things to look at."""
    first, second = knot(2).cycle
    told = Knot(cycle=(replace(first, kind="signal"), replace(second, kind="lock")), members=("u0", "u1"))
    assert way_out(told) == f"{WAYS_OUT['lock']} {WAYS_OUT['signal']}"


def test_a_long_cycle_is_cut_in_its_middle() -> None:
    """B14: what is said about ten thousand waits fits into an answer, and still names both ends."""
    text = cycle_text(knot(10_000))
    steps = text.split(" > ")
    assert len(steps) == STEPS_SHOWN + 1
    assert (steps[0], steps[-1]) == ("a0.do(o1)", "a0.do(o1)")
    assert "9989 more" in text
    assert len(cycle_text(knot(STEPS_SHOWN - 1)).split(" > ")) == STEPS_SHOWN


def test_a_knot_is_resolved_when_all_its_waits_ended_in_time() -> None:
    """D3: found helps only if everybody got on before a time-out would have ended it."""
    deadlocks = Deadlocks()
    one, two, three = wait("a", 1.0), wait("b", 2.0), wait("c", 2.0, deadline=4.0)
    assert deadlocks.note("confirmed", [one, two], 4.5)
    assert deadlocks.note("refused", [two, three], 4.0)
    assert (deadlocks.found, deadlocks.by_how["confirmed"], deadlocks.by_how["refused"], deadlocks.signal_s_max) == (
        2,
        1,
        1,
        2.5,
    )
    assert deadlocks.followed == 3
    deadlocks.ended(one, 5.0)
    assert deadlocks.resolved == 0
    deadlocks.ended(two, 6.0)
    assert (deadlocks.resolved, deadlocks.late) == (1, 0)
    deadlocks.ended(three, 7.0)
    assert (deadlocks.resolved, deadlocks.late, deadlocks.followed) == (1, 1, 0)
    assert deadlocks.wait_s_max == 5.0


def test_a_knot_that_is_found_again_is_the_same() -> None:
    """D2: level-triggered looks count it once, until it has gone."""
    deadlocks = Deadlocks()
    one, two = wait("a"), wait("b")
    assert deadlocks.note("refused", [one, two], 1.0)
    assert not deadlocks.note("confirmed", [two, one], 2.0)
    deadlocks.ended(one, 3.0)
    deadlocks.ended(two, 3.0)
    assert deadlocks.note("confirmed", [wait("a"), wait("b")], 4.0)
    assert (deadlocks.by_how["refused"], deadlocks.by_how["confirmed"], deadlocks.resolved) == (1, 1, 1)


def test_a_knot_that_its_units_close_anew_is_another_one() -> None:
    """D2: one gave way and waits for the same again; both knots count, and end when their own waits do."""
    deadlocks = Deadlocks()
    gave_way, stays, again = wait("a"), wait("b"), wait("a", since=3.0)
    assert deadlocks.note("confirmed", [gave_way, stays], 2.0)
    deadlocks.ended(gave_way, 2.0)
    assert deadlocks.note("confirmed", [again, stays], 4.0)
    assert not deadlocks.note("confirmed", [again, stays], 5.0)
    deadlocks.ended(again, 5.0)
    deadlocks.ended(stays, 6.0)
    assert (deadlocks.by_how["confirmed"], deadlocks.resolved, deadlocks.followed) == (2, 2, 0)


def test_a_unit_that_is_refused_again_and_again_is_in_one_knot() -> None:
    """D2, B14: however often it tries, what is kept of it does not grow."""
    deadlocks = Deadlocks()
    stays = wait("b")
    for number in range(3):
        tried = wait("a")
        assert deadlocks.note("refused", [tried, stays], 1.0) == (number == 0)
        deadlocks.ended(tried, 1.0)
    deadlocks.ended(stays, 2.0)
    assert (deadlocks.by_how["refused"], deadlocks.resolved, deadlocks.followed) == (1, 1, 0)


def test_an_ended_wait_of_no_knot_only_counts_as_a_wait() -> None:
    """D2: nothing is kept of waits that were in no knot."""
    deadlocks = Deadlocks()
    deadlocks.ended(wait("a"), 3.0)
    assert (deadlocks.wait_s_max, deadlocks.resolved, deadlocks.late) == (3.0, 0, 0)


def test_only_who_opens_a_wait_knows_how_to_end_it() -> None:
    """D3: a part that opens waits says how one is ended."""
    with pytest.raises(NotImplementedError):
        wait("a").release(problem("deadlock"))
