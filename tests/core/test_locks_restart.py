"""Locks after a restart of the gate: who held them comes first, with what it says that it held."""

from __future__ import annotations

from agentgate.core.locks import EPOCH_BITS
from tests.core.lock_kit import EPOCH, asked, claimed, locks_of, news


def test_after_a_restart_holders_come_first() -> None:
    """Nothing is granted until those who held locks are back, or their time is over; then in the order of coming."""
    locks = locks_of()
    locks.hold_back(10.0)
    early = asked(locks, "a", deadline=8.0)
    waits, free = asked(locks, "a", deadline=99.0), asked(locks, "b", deadline=99.0)
    assert [ticket.state for ticket in (early, waits, free)] == ["waiting"] * 3
    assert locks.groups(waits) == []
    ok, mine = claimed(locks, 77, "a", unit="u")
    assert (ok, mine.state, mine.epoch) == (True, "held", 77)
    assert locks.next_deadline() == 8.0
    assert news(locks, 8.0) == [(early, "deadline_exceeded")]
    assert news(locks, 10.0) == [(free, "")]
    assert free.epoch > mine.epoch
    assert claimed(locks, 78, "c")[0] is False  # too late: others may have had it meanwhile
    locks.open(11.0)
    locks.release(mine, 11.0)
    assert news(locks, 11.0) == [(waits, "")]


def test_who_waits_after_a_restart_is_told_why() -> None:
    """A time-out before anything is granted names no holder, since nobody knows one."""
    locks = locks_of()
    locks.hold_back(10.0)
    asked(locks, "a", deadline=4.0)
    [(_, problem)] = locks.tick(4.0)
    assert problem is not None
    assert "nothing is granted until those who held locks" in problem.detail


def test_all_are_back_before_the_time() -> None:
    """The gate need not wait for the whole time when everybody is there."""
    locks = locks_of()
    locks.hold_back(10.0)
    waits = asked(locks, "a")
    given_up = asked(locks, "b")
    locks.release(given_up, 1.0)
    locks.open(1.0)
    assert news(locks, 1.0) == [(waits, "")]
    assert locks.next_deadline() == 31.0


def test_of_two_claims_the_higher_epoch_is_right() -> None:
    """F130: the former holder of a lost lock does not get it back by being faster."""
    locks = locks_of()
    locks.hold_back(10.0)
    _, old = claimed(locks, 5, "a", "b", unit="old")
    ok, new = claimed(locks, 9, "b", process="p2")
    assert (ok, old.state, new.state) == (True, "lost", "held")
    assert locks.lost_by("old") is not None
    assert claimed(locks, 9, "b")[0] is False
    assert claimed(locks, 5, "b", process="p3")[0] is False
    assert claimed(locks, 0, "c")[0] is False
    assert claimed(locks, (EPOCH << EPOCH_BITS) + 1, "c")[0] is False
    assert news(locks) == [(old, "")]


def test_shared_claims_go_together() -> None:
    """Several who held a lock shared all get it back."""
    locks = locks_of()
    locks.hold_back(10.0)
    assert [claimed(locks, epoch, "a", mode="shared")[0] for epoch in (5, 7, 6)] == [True] * 3


def test_a_unit_may_have_lost_what_the_gate_never_knew() -> None:
    """What was not claimed in time is lost, and its unit writes no more."""
    locks = locks_of()
    locks.lose("u", ("a",))
    assert locks.lost_by("u") is not None
