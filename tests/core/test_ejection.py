"""Ejection: when an instance is put out, when it returns, and whose fault a fault is."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from agentgate.core.agent_slots import COUNTS, IGNORED, Health
from agentgate.core.instances import TABLE, Standing, StandingEvent
from agentgate.core.slots import Slots, SlotTicket
from agentgate.core.table import IllegalTransition, step
from tests.core.slot_stage import OK, call_of, instances_of, parked, seated, slots_of, wakes

THREE = ("one", "two", "three")


def seat_on(slots: Slots, instance: str, now: float = 0.0) -> SlotTicket:
    """A call on that very instance; the calls that landed elsewhere are given back."""
    elsewhere = []
    while (ticket := seated(slots, call_of(), now)).instance != instance:
        elsewhere.append(ticket)
    for other in elsewhere:
        slots.abandon(other, now)
    return ticket


def fail(slots: Slots, instance: str, times: int = 1, now: float = 0.0) -> list[Health]:
    """So many calls that ran and failed there, one after the other."""
    heard = []
    for _ in range(times):
        ticket = seat_on(slots, instance, now)
        heard.append(slots.record(ticket, "fault", now))
        slots.settle(ticket, OK, now)
    return heard


def standings(slots: Slots) -> dict[str, Standing]:
    return {name: shown.standing for name, shown in instances_of(slots).items()}


@pytest.mark.parametrize(("state", "event"), list(product(get_args(Standing), get_args(StandingEvent))))
def test_the_table_knows_four_pairs_and_refuses_the_others(state: Standing, event: StandingEvent) -> None:
    """The standing of an instance moves along its table only."""
    if (state, event) in TABLE:
        assert step(TABLE, state, event) in get_args(Standing)
    else:
        with pytest.raises(IllegalTransition):
            step(TABLE, state, event)


def test_three_faults_in_a_row_put_an_instance_out() -> None:
    """B2: the third fault ejects it, does not count, and takes back the two that did."""
    slots = slots_of(8, THREE)
    first, second, third = fail(slots, "two", 3)
    assert (first, second, third.counts) == (COUNTS, COUNTS, False)
    assert [ticket.instance for ticket in third.retracted] == ["two", "two"]
    assert standings(slots) == {"one": "in", "two": "out", "three": "in"}
    assert {seated(slots).instance for _ in range(8)} == {"one", "three"}
    assert instances_of(slots)["two"].out_until == 10.0


def test_a_good_answer_ends_the_run() -> None:
    """B2: three faults with a good answer between them eject nobody; what is neutral changes nothing."""
    slots = slots_of(8, THREE)
    fail(slots, "two", 2)
    assert slots.record(seat_on(slots, "two"), "neutral", 0.0) == COUNTS
    assert slots.record(seat_on(slots, "two"), "ok", 0.0) == COUNTS
    fail(slots, "two", 2)
    assert standings(slots)["two"] == "in"
    (third,) = fail(slots, "two")
    assert len(third.retracted) == 2


@pytest.mark.parametrize(("instances", "out_max"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_at_most_half_are_out(instances: int, out_max: int) -> None:
    """B2: with one instance none, with two one, with three one; the others count in full."""
    names = tuple(f"i{number}" for number in range(instances))
    slots = slots_of(1, names)
    heard = {
        name: fail(slots, name, 4) if number >= out_max else fail(slots, name, 3) for number, name in enumerate(names)
    }
    assert list(standings(slots).values()) == ["out"] * out_max + ["in"] * (instances - out_max)
    for name in names[out_max:]:
        assert heard[name] == [COUNTS] * 4


def test_an_instance_that_could_not_be_put_out_goes_later() -> None:
    """When the share allows it, the next fault in the run ejects, and takes back the two before it."""
    slots = slots_of(8, ("one", "two"))
    fail(slots, "one", 3)
    fail(slots, "two", 5)
    assert standings(slots) == {"one": "out", "two": "in"}
    slots.join("stock", "three", 8, 0.0)
    slots.join("stock", "four", 8, 0.0)
    (health,) = fail(slots, "two")
    assert (health.counts, len(health.retracted)) == (False, 2)


def test_late_answers_of_an_ejected_instance_do_not_count() -> None:
    """B2: what was sent before it was put out counts for nobody: not while it is out, not when it is back."""
    slots = slots_of(8, THREE)
    late = [seat_on(slots, "two") for _ in range(4)]
    fail(slots, "two", 3)
    assert slots.record(late[0], "fault", 1.0) == IGNORED
    assert slots.record(late[1], "ok", 1.0) == IGNORED
    for ticket in late[:2]:
        slots.settle(ticket, OK, 1.0)
    slots.tick(10.0)
    seated(slots, now=10.0)
    assert slots.record(late[2], "ok", 11.0) == IGNORED
    assert slots.record(late[3], "fault", 11.0) == IGNORED
    assert standings(slots)["two"] == "trial"


def test_an_adopted_unit_of_an_ejected_instance_does_not_count_either() -> None:
    """While it is out, whatever it answers is about the past."""
    slots = slots_of(8, THREE)
    fail(slots, "two", 3)
    assert slots.record(slots.adopt(call_of(), "two", 1.0), "ok", 2.0) == IGNORED


def test_a_returning_instance_gets_one_call_until_it_answers_well() -> None:
    """B2: one real call shows whether it is fit again; then it takes its full share."""
    slots = slots_of(2, THREE)
    fail(slots, "two", 3)
    for _ in range(4):
        seated(slots, now=5.0)
    parked(slots, call_of("waiting"), 5.0)
    assert wakes(slots, 5.0) == {}
    assert slots.next_deadline() == 10.0
    assert wakes(slots, 10.0) == {"waiting": "two"}
    parked(slots, call_of("second"), 10.0)
    assert wakes(slots, 10.0) == {}
    trial = slots.adopt(call_of(), "two", 10.0)
    assert slots.record(trial, "neutral", 11.0) == COUNTS
    assert standings(slots)["two"] == "trial"
    slots.abandon(trial, 11.0)
    trial = slots.adopt(call_of(), "two", 11.0)
    slots.record(trial, "ok", 12.0)
    assert standings(slots)["two"] == "in"
    slots.settle(trial, OK, 12.0)
    assert wakes(slots, 12.0) == {"second": "two"}


def test_a_failed_trial_puts_it_out_for_longer() -> None:
    """B2: 10, 20, 40, 60, 60 s; one fault on trial is enough, and it is not the agent's."""
    slots = slots_of(8, ("one", "two"))
    fail(slots, "two", 3)
    now = 0.0
    for rest_s in (10.0, 20.0, 40.0, 60.0, 60.0):
        out_until = instances_of(slots)["two"].out_until
        assert out_until == now + rest_s
        now = out_until
        slots.tick(now)
        assert fail(slots, "two", now=now) == [Health(counts=False)]


@pytest.mark.parametrize(("well_s", "rest_s"), [(0.0, 40.0), (59.0, 40.0), (60.0, 20.0), (120.0, 10.0), (900.0, 10.0)])
def test_good_standing_takes_the_doubling_back(well_s: float, rest_s: float) -> None:
    """Each minute in good standing after a return halves the next rest again."""
    slots = slots_of(8, ("one", "two"))
    fail(slots, "two", 3)
    slots.tick(10.0)
    fail(slots, "two", now=10.0)  # out until 30, and twice that the next time
    slots.tick(30.0)
    slots.record(seat_on(slots, "two", 30.0), "ok", 30.0)
    fail(slots, "two", 3, now=30.0 + well_s)
    assert instances_of(slots)["two"].out_until == 30.0 + well_s + rest_s


@pytest.mark.parametrize("leave", ["away", "drain", "leave"])
def test_the_share_holds_when_others_leave(leave: str) -> None:
    """When the fit instances leave, those that are out come back early, on trial."""
    slots = slots_of(8, THREE)
    fail(slots, "two", 3)
    for name in ("one", "three"):
        assert standings(slots)["two"] == "out"
        getattr(slots, leave)(name)
    assert standings(slots)["two"] == "trial"
    assert seated(slots).instance == "two"


def test_the_first_to_return_is_the_one_whose_time_ends_first() -> None:
    """Of several that are out, the one with the shortest rest left comes back."""
    slots = slots_of(8, ("one", "two", "three", "four"))
    fail(slots, "two", 3, now=1.0)
    fail(slots, "one", 3, now=2.0)
    slots.leave("three")
    assert standings(slots) == {"one": "out", "two": "trial", "four": "in"}


def test_an_instance_on_trial_may_fail_in_full() -> None:
    """When no share is left to put it out again, its fault is the agent's."""
    slots = slots_of(8, ("one", "two"))
    fail(slots, "two", 3)
    slots.leave("one")
    assert fail(slots, "two", now=1.0) == [COUNTS]
    assert standings(slots) == {"two": "trial"}


def test_faults_of_a_lost_instance_are_its_own_while_others_are_there() -> None:
    """A killed process loses everything in its hands at once; that is no fault of the agent (A8)."""
    slots = slots_of(8, THREE)
    lost = [seat_on(slots, "two") for _ in range(5)]
    slots.away("two")
    assert [slots.record(ticket, "fault", 0.0) for ticket in lost[:2]] == [IGNORED] * 2
    slots.leave("two")
    assert [slots.record(ticket, "fault", 0.0) for ticket in lost[2:4]] == [IGNORED] * 2
    assert slots.record(lost[4], "ok", 0.0) == COUNTS


@pytest.mark.parametrize("leave", ["away", "leave"])
def test_faults_of_the_only_instance_are_the_agents(leave: str) -> None:
    """With nobody else there, a lost instance is a lost agent, and its breaker should know."""
    slots = slots_of(8)
    lost = [seat_on(slots, "one") for _ in range(4)]
    getattr(slots, leave)("one")
    slots.tick(0.0)
    assert [slots.record(ticket, "fault", 0.0) for ticket in lost] == [COUNTS] * 4


def test_a_ticket_speaks_once() -> None:
    """A write that timed out counts at its time-out; its late answer moves nothing (DESIGN 4.1)."""
    slots = slots_of(8, THREE)
    ticket = seat_on(slots, "two")
    assert slots.record(ticket, "fault", 1.0) == COUNTS
    for kind in ("fault", "ok"):
        assert slots.record(ticket, kind, 2.0) == IGNORED
    fail(slots, "two", 1)
    assert standings(slots)["two"] == "in"
    fail(slots, "two", 1)
    assert standings(slots)["two"] == "out"


def test_a_ticket_without_an_instance_says_nothing() -> None:
    """A shadow ticket of an agent that is not there is no reason to blame anybody."""
    slots = slots_of(instances=())
    assert slots.record(slots.shadow(call_of(), 0.0), "fault", 0.0) == COUNTS


def test_ejection_at_the_first_fault_can_be_configured() -> None:
    """With `ejection_faults` 1 there is no run to take back."""
    slots = slots_of(8, THREE, ejection_faults=1)
    assert fail(slots, "two") == [Health(counts=False)]
