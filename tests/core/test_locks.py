"""Locks by example: order, turns, time-outs, leases, epochs, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.lock import TABLE, LockTicket
from agentgate.core.locks import EPOCH_BITS, LockOptions, Locks
from agentgate.model import LockMode, Problem
from tests.core.lock_kit import EPOCH, asked, locks_of, news, refused


def test_one_after_the_other() -> None:
    """DESIGN 4.4: exclusive locks follow one another in the order of asking, under epochs that grow."""
    locks = locks_of()
    first, second, third = (asked(locks, "stock") for _ in range(3))
    assert [ticket.state for ticket in (first, second, third)] == ["held", "waiting", "waiting"]
    locks.release(first, 1.0)
    assert news(locks) == [(second, "")]
    locks.release(second, 2.0)
    assert news(locks) == [(third, "")]
    assert EPOCH << EPOCH_BITS < first.epoch < second.epoch < third.epoch
    locks.release(third, 3.0)
    assert list(locks) == []
    assert locks.standing() == {}


def test_shared_ones_go_together_and_do_not_starve_an_exclusive_one() -> None:
    """Whoever comes after a waiting exclusive request waits behind it, also when it would fit."""
    locks = locks_of()
    readers = [asked(locks, "stock", mode="shared") for _ in range(2)]
    writer = asked(locks, "stock")
    late = [asked(locks, "stock", mode="shared") for _ in range(2)]
    assert [ticket.state for ticket in readers] == ["held"] * 2
    locks.release(readers[0], 0.0)
    assert news(locks) == []
    locks.release(readers[1], 0.0)
    assert news(locks) == [(writer, "")]
    locks.release(writer, 0.0)
    assert news(locks) == [(late[0], ""), (late[1], "")]


def test_who_leaves_the_line_lets_others_pass() -> None:
    """D5: giving up frees the place: those behind may fit now."""
    locks = locks_of()
    asked(locks, "stock", mode="shared")
    writer, reader = asked(locks, "stock"), asked(locks, "stock", mode="shared")
    locks.release(writer, 0.0)
    assert news(locks) == [(reader, "")]


def test_the_end_of_every_wait_is_news() -> None:
    """Whoever gives up what it waits for, or what has just been granted, waits no longer: once, and with no problem."""
    locks = locks_of()
    holder, granted, waits, late = (asked(locks, "stock") for _ in range(4))
    locks.release(holder, 0.0)
    locks.release(granted, 0.0)
    locks.release(late, 0.0)
    assert locks.tick(0.0) == [(granted, None), (waits, None), (late, None)]
    assert [ticket.state for ticket in (granted, waits, late)] == ["ended", "held", "ended"]
    locks.release(waits, 0.0)
    assert locks.tick(0.0) == []


def test_many_are_granted_at_once() -> None:
    """D6: however they are written, names are taken in one order, and granted all or none."""
    locks = locks_of()
    one = asked(locks, "b", "a", "b")
    assert one.names == ("a", "b")
    two, three = asked(locks, "c", "b"), asked(locks, "c")
    assert (two.state, three.state) == ("waiting", "held")  # `two` is not as far as `c`, so it holds nobody up there
    locks.release(one, 0.0)
    assert news(locks) == []
    assert two.kept == ("b",)
    locks.release(three, 0.0)
    assert news(locks) == [(two, "")]


def test_what_was_kept_goes_back_when_its_owner_gives_up() -> None:
    """D5: a time-out frees the locks that were kept for the others."""
    locks = locks_of()
    holder = asked(locks, "b", deadline=100.0)
    both = asked(locks, "a", "b", deadline=5.0)
    behind = asked(locks, "a", deadline=100.0)
    assert locks.next_deadline() == 5.0
    assert news(locks, 5.0) == [(both, "deadline_exceeded"), (behind, "")]
    assert holder.state == "held"


def test_a_time_out_says_who_is_in_the_way() -> None:
    """D8: whoever waited in vain is told for what, how long, and who has it."""
    locks = locks_of()
    asked(locks, "stock", unit="u-1", owner="order_agent", work="confirm(o1)")
    asked(locks, "stock", now=1.0, unit="", owner="desk", deadline=9.0)
    asked(locks, "stock", "tax", now=2.0, deadline=4.0)
    [(_, problem)] = locks.tick(4.0)
    assert problem is not None
    assert problem.detail == "waited 2.0 s for 'stock': order_agent.confirm(o1) (unit u-1) has it, for 4.0 s"
    assert not problem.sent
    shared = asked(locks, "paper", mode="shared")
    asked(locks, "paper", unit="", owner="desk", deadline=50.0)
    late = asked(locks, "paper", mode="shared", now=5.0, deadline=6.0)
    [*_, (ticket, problem)] = locks.tick(6.0)
    assert problem is not None
    assert (ticket, problem.detail) == (late, "waited 1.0 s for 'paper': desk is ahead in line, for 6.0 s")
    assert shared.state == "held"


def test_no_time_means_now_or_not() -> None:
    """A time-out of 0 asks without waiting."""
    locks = locks_of()
    held = asked(locks, "stock", deadline=0.0)
    assert refused(locks, "stock", deadline=0.0).code == "deadline_exceeded"
    locks.release(held, 0.0)
    assert asked(locks, "stock", deadline=0.0).state == "held"


def test_time_outs_are_spread() -> None:
    """D5: 15 % either way, so that two sides do not come back in step."""
    assert Locks(LockOptions(), lambda: 0.0, 1).time_out_s(None) == 8.5
    assert Locks(LockOptions(), lambda: 1.0, 1).time_out_s(20.0) == pytest.approx(23.0)


def test_two_that_come_due_together_are_both_told() -> None:
    """One that is granted by what another gives back at the same moment has its lock, whatever its deadline."""
    locks = locks_of()
    asked(locks, "b", deadline=99.0)
    both, behind = asked(locks, "a", "b", deadline=5.0), asked(locks, "a", deadline=5.0)
    assert news(locks, 5.0) == [(both, "deadline_exceeded"), (behind, "")]


@pytest.mark.parametrize(
    ("mode", "names", "told"),
    [
        ("exclusive", ("b",), "holds 'b' already"),
        ("shared", ("b",), "holds 'b' exclusive, which cannot be changed to shared"),
        ("exclusive", ("a",), "holds 'b' and asks for 'a', which comes before in the order of names: ask for 'a', 'b'"),
        ("exclusive", ("a", "c"), "ask for 'a', 'b', 'c' in one request"),
    ],
)
def test_a_unit_asks_in_order(mode: Any, names: tuple[str, ...], told: str) -> None:
    """D6: within a unit as well, locks are taken in one order, each once; what is right is said."""
    locks = locks_of()
    asked(locks, "b", unit="u")
    problem = refused(locks, *names, mode=mode, unit="u")
    assert problem.code == "bad_request"
    assert told in problem.detail
    assert asked(locks, "c", unit="u").state == "held"
    assert asked(locks, "b", unit="").state == "waiting"


def test_what_a_unit_waits_for_counts_as_well() -> None:
    """D6: two tasks of one unit do not take later locks while they wait for earlier ones."""
    locks = locks_of()
    asked(locks, "b")
    asked(locks, "b", unit="u")
    assert "this unit waits for 'b' already: pass on" in refused(locks, "b", unit="u").detail
    assert "this unit waits for 'b' already: ask for 'b', 'c' in one" in refused(locks, "c", unit="u").detail


def test_a_lease_ends_unless_the_process_lives() -> None:
    """D8: a sign of life renews all leases of a process; without one they end, and the next in line has its turn."""
    locks = locks_of(lease_s=30.0)
    lost, kept = asked(locks, "a", "b"), asked(locks, "c", process="p2")
    asked(locks, "d", process="p2", deadline=99.0)
    waits = asked(locks, "a", deadline=99.0)
    locks.renew("p2", 20.0)
    locks.renew("p3", 20.0)
    assert locks.next_deadline() == 30.0
    assert news(locks, 29.9) == []
    assert news(locks, 30.0) == [(lost, ""), (waits, "")]
    assert (lost.state, kept.state, waits.state) == ("lost", "held", "held")
    assert locks.next_deadline() == 50.0
    problem = locks.lost_by(lost.unit)
    assert problem is not None
    assert (problem.code, "has lost 'a', 'b'" in problem.detail) == ("lease_lost", True)
    assert refused(locks, "z", unit=lost.unit).code == "lease_lost"
    locks.end_unit(lost.unit, 31.0)
    assert locks.lost_by(lost.unit) is None


def test_a_unit_that_does_not_stop_loses_its_lease() -> None:
    """D8: signs of life of its process do not renew what a zombie holds, but the locks of the session."""
    locks = locks_of(lease_s=30.0)
    zombie, session = asked(locks, "a", unit="u"), asked(locks, "b", unit="u", scope="session")
    locks.overstay("u")
    locks.overstay("unknown")
    locks.renew("p1", 10.0)
    assert news(locks, 30.0) == [(zombie, "")]
    assert session.lease_ends_at == 40.0


def test_locks_end_with_their_unit_or_their_process() -> None:
    """D8: as fine as one message: the end of the unit frees its locks; those of the session go with the process."""
    locks = locks_of()
    message, session = asked(locks, "a", unit="u"), asked(locks, "b", unit="u", scope="session")
    asked(locks, "c")
    waits = asked(locks, "c", unit="u", scope="session")
    others = [asked(locks, name, process="p2") for name in ("a", "b")]
    assert locks.end_unit("u", 1.0)
    assert (message.state, session.state, waits.state) == ("ended", "held", "ended")
    assert news(locks) == [(others[0], "")]
    assert locks.groups(others[1]) == []  # nobody's unit any more, so only its process can tell
    locks.end_process("p1", 2.0)
    assert news(locks) == [(others[1], "")]
    locks.end_process("p1", 2.0)
    assert not locks.end_unit("u", 2.0)


def test_a_session_lock_that_is_lost_after_its_unit_stains_nobody() -> None:
    """A lease that ends when no unit works under it is news to its process only."""
    locks = locks_of(lease_s=30.0)
    session = asked(locks, "b", unit="u", scope="session")
    locks.end_unit("u", 1.0)
    assert news(locks, 30.0) == [(session, "")]
    assert locks.lost_by("u") is None


def test_the_wait_graph_is_told_who_has_to_go() -> None:
    """D4: of each name the next ones ahead, who wait for those before them; those who go together do not wait."""
    locks = locks_of()
    asked(locks, "a", unit="ua")
    asked(locks, "b", unit="ub", mode="shared")
    asked(locks, "c", unit="", scope="session")
    ahead = asked(locks, "b", unit="ux")
    waits = asked(locks, "a", "b", "c", unit="uw", mode="shared")
    assert locks.groups(ahead) == [("ub",)]
    assert locks.groups(waits) == [("ua",), ("ux",)]
    behind = asked(locks, "a", unit="uz", mode="shared")
    assert locks.groups(behind) == [("ua",)]


def test_a_request_waits_for_the_next_ones_ahead() -> None:
    """D4: a writer for all readers right before it, a reader for the last writer; those wait for who was before."""
    locks = locks_of()
    line = "r1 r2 w1 r3 r4 w2 w3 r5"
    modes: dict[str, LockMode] = {"r": "shared", "w": "exclusive"}
    tickets = [asked(locks, "a", unit=unit, mode=modes[unit[0]]) for unit in line.split()]
    told = [[unit for (unit,) in locks.groups(ticket)] for ticket in tickets]
    assert told == [[], [], ["r1", "r2"], ["w1"], ["w1"], ["r3", "r4"], ["w2"], ["w3"]]
    locks.release(tickets[2], 0.0)
    assert [[unit for (unit,) in locks.groups(ticket)] for ticket in tickets[5:]] == [
        ["r1", "r2", "r3", "r4"],
        ["w2"],
        ["w3"],
    ]


def test_who_is_not_bound_to_go_is_passed_over() -> None:
    """D3: nobody knows when a session or a zombie gives a lock back; what is before them in line has to go as well."""
    locks = locks_of()
    asked(locks, "a", unit="u1", mode="shared")
    session = asked(locks, "a", unit="u2", scope="session")
    reader = asked(locks, "a", unit="u3", mode="shared")
    zombie = asked(locks, "a", unit="u4")
    last = asked(locks, "a", unit="u5")
    assert [locks.groups(ticket) for ticket in (session, reader, zombie)] == [[("u1",)], [], [("u1",), ("u3",)]]
    assert locks.groups(last) == [("u4",)]
    locks.overstay("u4")
    assert locks.groups(last) == [("u1",), ("u3",)]
    locks.end_unit("u1", 0.0)
    assert session.state == "held"
    assert locks.groups(last) == [("u3",)]


@pytest.mark.parametrize("end", ["release", "lapse"])
def test_what_has_ended_waits_for_nobody(end: str) -> None:
    """H2: whoever still has the request in hand, for a picture that is read in slices, may ask on."""
    locks = locks_of()
    holder, waits = asked(locks, "a"), asked(locks, "a", "b")
    assert locks.groups(waits) != []
    if end == "release":
        locks.release(waits, 0.0)
    locks.release(holder, 0.0)
    locks.tick(1_000.0)
    assert (locks.groups(holder), locks.groups(waits), list(locks)) == ([], [], [])


@pytest.mark.parametrize("count", [50, 100, 200, 400])
def test_a_long_line_costs_what_it_is_long(count: int) -> None:
    """D2: before the last of a line was a group for each ahead, 1 225 in all for 50, 79 800 for 400; now one each."""
    locks = locks_of()
    tickets = [asked(locks, "stock") for _ in range(count)]
    assert sum(len(locks.groups(ticket)) for ticket in tickets) == count - 1


def test_an_old_epoch_is_known_as_old() -> None:
    """F130: what a former holder writes carries an epoch that is not the one of the lock any more."""
    locks = locks_of()
    first = asked(locks, "stock")
    assert locks.check("stock", first.epoch)
    second = asked(locks, "stock")
    assert not locks.check("stock", second.epoch)
    locks.release(first, 0.0)
    assert (locks.check("stock", first.epoch), locks.check("stock", second.epoch)) == (False, True)
    assert not locks.check("other", first.epoch)
    assert locks.get("p1", second.id) is second
    assert locks.get("p2", second.id) is None


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), "names 1 to 16 of them, not 0"),
        (tuple("abcdefghijklmnopq"), "not 17"),
        (("a", " "), "the name of a lock is empty"),
        (("a\x00",), "U+0000"),
        (("a\x1fb",), "U+001F"),
        (("x" * 201,), "201 characters"),
    ],
)
def test_names_are_names(names: tuple[str, ...], told: str) -> None:
    """Names come from outside: how many, how long and what they may hold is bounded."""
    problem = locks_of().names("default", names)
    assert isinstance(problem, Problem)
    assert (problem.code, told in problem.detail) == ("bad_request", True)


def test_tenants_do_not_meet() -> None:
    """C: one name of two tenants is two locks."""
    locks = locks_of()
    names = locks.names("acme", ["stock"])
    assert isinstance(names, tuple)
    asked(locks, "stock")
    theirs = LockTicket(id="x", names=names, process="p9")
    assert locks.request(theirs, 0.0) is None
    assert theirs.state == "held"


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ({"locks_max": 4}, "2 locks are in use, which is the bound of one tenant"),
        ({"askers_max": 2}, "2 requests hold or wait for 'a'"),
        ({"process_max": 3}, "one process may hold and wait for 3 locks"),
    ],
)
def test_everything_is_bounded(bound: dict[str, int], told: str) -> None:
    """F110: locks, those who want one, and what one process wants have bounds, at which is said so."""
    locks = locks_of(**bound)
    first = asked(locks, "a")
    asked(locks, "a", "b")
    problem = refused(locks, "a", "c")
    assert (problem.code, problem.retry_after_ms, told in problem.detail) == ("overloaded", 1000, True)
    locks.release(first, 0.0)
    locks.tick(0.0)
    asked(locks, "a")


def test_one_tenant_leaves_room_for_others() -> None:
    """I6, F110: it may use half of all locks; who comes when all are in use is told so, and what is free is free."""
    locks = locks_of(locks_max=4)
    first = asked(locks, "a", "b")
    assert "of one tenant" in refused(locks, "c").detail
    for number, tenant in enumerate(("acme", "initech")):
        names = locks.names(tenant, ["a"])
        assert isinstance(names, tuple)
        assert locks.request(LockTicket(id="x", names=names, process=f"p{number}", unit=tenant), 0.0) is None
    names = locks.names("umbrella", ["a"])
    assert isinstance(names, tuple)
    refusal = locks.request(LockTicket(id="x", names=names, process="p9"), 0.0)
    assert refusal is not None
    assert refusal.detail == "4 locks are in use, which is the bound"
    locks.release(first, 0.0)
    asked(locks, "c", "d")


@pytest.mark.parametrize(
    "options",
    [{"lease_s": 0}, {"wait_s": -1.0}, {"spread": 0.6}, {"names_max": 0}, {"locks_max": 1}, {"askers_max": 0}],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    """I7: what can never be right is refused when it is read."""
    with pytest.raises(ValueError, match=next(iter(options))):
        LockOptions(**options)


def test_the_table_ends() -> None:
    """Every life of a request ends held by nobody."""
    ends = {after for after in TABLE.values() if not any(before == after for before, _ in TABLE)}
    assert ends == {"lost", "ended"}
