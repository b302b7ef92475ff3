"""Units that wait give their slots to others, and count again when they go on (DESIGN 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentgate.core.slots import SlotOptions, Slots, SlotTicket
from tests.core.slot_stage import OK, call_of, instances_of, parked, refused, seated, slots_of, wakes


def of_unit(slots: Slots, unit: str, key: str = "") -> SlotTicket:
    ticket = seated(slots, call_of(unit, exclusive=key))
    ticket.unit = unit
    return ticket


def holders(slots: Slots) -> Sequence[str] | None:
    return slots.pool("stock").holders()


def counts(slots: Slots, name: str = "one") -> tuple[int, int, int]:
    """How many run, rest, and run beyond the limit."""
    shown = instances_of(slots)[name]
    return shown.outstanding, shown.resting, shown.over


def test_a_unit_that_waits_makes_room_and_comes_back_over_the_limit() -> None:
    """B11, D4: the slot of one that waits goes to the head of the queue; at its return it counts at once, and nobody
    new is admitted until there is room again.
    """
    slots = slots_of()
    first = seated(slots)
    parked(slots, call_of("second"))
    parked(slots, call_of("third"))
    slots.rest(first, 1.0)
    assert wakes(slots, 1.0) == {"second": "one"}
    assert counts(slots) == (1, 1, 0)
    slots.resume(first, 2.0)
    assert counts(slots) == (2, 0, 1)
    slots.settle(first, OK, 3.0)
    assert wakes(slots, 3.0) == {}  # the second one still runs
    assert counts(slots) == (1, 0, 0)


def test_who_comes_back_into_room_is_not_over_the_limit() -> None:
    """Resting again takes the allowance back, so that a unit never has two."""
    slots = slots_of()
    first = seated(slots)
    slots.rest(first, 1.0)
    slots.resume(first, 2.0)
    assert counts(slots) == (1, 0, 0)
    slots.rest(first, 3.0)
    second = seated(slots, now=3.0)
    slots.resume(first, 4.0)
    slots.rest(first, 5.0)
    assert counts(slots) == (1, 1, 0)
    slots.settle(second, OK, 6.0)
    slots.resume(first, 6.0)
    assert counts(slots) == (1, 0, 0)


def test_open_units_are_limited() -> None:
    """DESIGN 4.3: `open_factor` times the limit may run or wait; beyond that calls queue, although nobody runs."""
    slots = slots_of(open_factor=2)
    resting = []
    for _ in range(2):
        resting.append(seated(slots))
        slots.rest(resting[-1], 0.0)
    assert counts(slots) == (0, 2, 0)
    parked(slots, call_of("late"))
    slots.settle(resting.pop(), OK, 1.0)
    assert wakes(slots, 1.0) == {"late": "one"}
    with pytest.raises(ValueError, match="open_factor"):
        SlotOptions(open_factor=0)


def test_on_trial_one_is_open() -> None:
    """B11: an instance that returns shows what it can with one call, also while that one waits."""
    slots = slots_of(4, ("one", "two"), ejection_faults=1, eject_s=10.0)
    slots.drain("two")
    slots.join("stock", "two", 4, 0.0)
    failed = seated(slots)
    slots.record(failed, "fault", 0.0)
    slots.settle(failed, OK, 0.0)
    tried = failed.instance
    others = [seated(slots, now=10.0) for _ in range(5)]
    (trial,) = [ticket for ticket in others if ticket.instance == tried]
    slots.rest(trial, 10.0)
    parked(slots, call_of("next"), 10.0)
    slots.record(trial, "ok", 11.0)
    assert wakes(slots, 11.0) == {"next": tried}


@pytest.mark.parametrize("end", ["settle", "abandon", "overstay", "leave"])
def test_who_rests_may_end(end: str) -> None:
    """F104: whatever ends it while it waits, nothing is left and nothing is given back twice."""
    slots = slots_of()
    ticket = of_unit(slots, "u1", "o1")
    slots.rest(ticket, 1.0)
    if end == "leave":
        slots.leave("one")
        slots.settle(ticket, OK, 2.0)
    elif end == "overstay":
        slots.overstay(ticket, 2.0)
        assert counts(slots) == (0, 0, 0)
        slots.resume(ticket, 2.0)  # its call has ended at last: it is a zombie, and holds no slot
        slots.rest(ticket, 2.0)
        assert counts(slots) == (0, 0, 0)
        assert slots.key_holder(call_of(exclusive="o1")) == "u1"
        slots.settle(ticket, OK, 3.0)
    else:
        getattr(slots, end)(ticket, *([OK] if end == "settle" else []), 2.0)
    with pytest.raises(AssertionError, match="ends once"):
        slots.abandon(ticket, 4.0)
    slots.join("stock", "one", 1, 4.0)
    assert counts(slots) == (0, 0, 0)
    assert slots.key_holder(call_of(exclusive="o1")) is None


def test_a_unit_that_was_found_running_rests_like_any_other() -> None:
    """DESIGN 4.5: it is allowed for as long as it is open, and needs no second allowance when it goes on."""
    slots = slots_of()
    seated(slots)
    found = slots.adopt(call_of(), "one", 0.0)
    slots.rest(found, 1.0)
    shown = instances_of(slots)["one"]
    assert (shown.outstanding, shown.resting, shown.adopted) == (1, 1, 1)
    slots.resume(found, 2.0)
    slots.settle(found, OK, 3.0)
    shown = instances_of(slots)["one"]
    assert (shown.outstanding, shown.adopted, shown.over) == (1, 0, 0)


def test_waits_do_not_count_as_time_in_a_slot() -> None:
    """B11: the expected wait is how long slots are held; units that wait for minutes hold none meanwhile."""
    slots = slots_of(1, holds_min=2, open_factor=1)
    for end in ("resting", "resumed"):
        ticket = seated(slots)
        slots.rest(ticket, 1.0)
        if end == "resumed":
            slots.resume(ticket, 100.0)
            slots.settle(ticket, OK, 100.0)
        else:
            slots.settle(ticket, OK, 100.0)
    running = seated(slots, now=100.0)
    parked(slots, call_of("in time", deadline=103.5), 100.0)
    parked(slots, call_of("in time too", deadline=103.5), 100.0)
    assert refused(slots, call_of("too late", deadline=102.5), 100.0).code == "overloaded"
    slots.settle(running, OK, 101.0)


def test_an_observed_limit_rests_as_well() -> None:
    """I2: what is counted is what enforcing would count; a unit without a slot has none to give."""
    slots = Slots(SlotOptions(), observes=True)
    slots.join("stock", "one", 1, 0.0)
    first, second = seated(slots), seated(slots)
    assert second.would == "would_queue"
    slots.rest(second, 1.0)
    slots.resume(second, 1.0)
    assert counts(slots) == (1, 0, 0)
    slots.rest(first, 1.0)
    third = seated(slots, now=1.0)
    assert third.would == ""
    assert holders(slots) is None  # nobody waits for room
    for ticket in (first, second, third):
        slots.settle(ticket, OK, 2.0)
    assert counts(slots) == (0, 0, 0)


def test_the_pool_names_who_is_in_the_way() -> None:
    """D4: who runs, of any instance; when too many are open, who rests too; nobody while there is room."""
    slots = slots_of(1, ("one", "two"), open_factor=2)
    assert holders(slots) is None
    first, second = of_unit(slots, "u1"), of_unit(slots, "u2")
    assert holders(slots) == ["u1", "u2"]
    slots.rest(first, 1.0)
    assert holders(slots) is None
    third = of_unit(slots, "u3")
    assert (first.instance, third.instance) == ("one", "one")
    assert holders(slots) == ["u3", "u2"]
    slots.rest(third, 2.0)
    assert holders(slots) == ["u1", "u3", "u2"]
    slots.resume(first, 3.0)
    slots.resume(third, 3.0)
    assert holders(slots) == ["u1", "u3", "u2"]
    second.unit = ""
    assert holders(slots) is None


def test_the_pool_names_nobody_while_it_cannot_be_known() -> None:
    """D4: an instance that is away may take calls by the passing of time; one that drains will not."""
    slots = slots_of(1, ("one", "two"), ejection_faults=1, eject_s=10.0)
    tickets = {ticket.instance: ticket for ticket in (of_unit(slots, "u1"), of_unit(slots, "u2"))}
    pool = slots.pool("stock")
    slots.away("one")
    assert pool.holders() is None
    slots.drain("one")
    assert pool.holders() == [tickets["two"].unit]
    slots.leave("one")
    slots.leave("two")
    assert pool.holders() is None
    assert slots.pool("stock") is pool
    assert slots.pool("nobody") is slots.pool("nobody")
    assert slots.pool("nobody").holders() is None


def test_an_instance_that_is_out_takes_nothing_before_it_has_ended_what_it_runs() -> None:
    """D4: out or on trial, whatever it has open is in the way; with nothing in hand time alone brings it back."""
    slots = slots_of(1, ("one", "two"), ejection_faults=1, eject_s=10.0)
    tickets = {ticket.instance: ticket for ticket in (of_unit(slots, "u1"), of_unit(slots, "u2"))}
    pool = slots.pool("stock")
    slots.record(tickets["one"], "fault", 0.0)
    assert instances_of(slots)["one"].standing == "out"
    assert pool.holders() == [tickets["one"].unit, tickets["two"].unit]
    slots.rest(tickets["one"], 1.0)
    assert pool.holders() == [tickets["one"].unit, tickets["two"].unit]
    slots.tick(20.0)
    parked(slots, now=20.0)
    assert instances_of(slots)["one"].standing == "trial"
    assert pool.holders() == [tickets["one"].unit, tickets["two"].unit]


def test_an_instance_that_is_out_with_nothing_in_hand_comes_back_by_itself() -> None:
    """D4: nobody is named while time alone brings a free slot."""
    slots = slots_of(1, ("one", "two"), ejection_faults=1, eject_s=10.0)
    tickets = {ticket.instance: ticket for ticket in (of_unit(slots, "u1"), of_unit(slots, "u2"))}
    slots.record(tickets["one"], "fault", 0.0)
    slots.settle(tickets["one"], OK, 0.0)
    assert slots.pool("stock").holders() is None


def test_nobody_is_named_while_an_instance_may_come_back_after_a_restart() -> None:
    """D4, F71: it may bring a free slot; once it is here, or given up, what is known is all there is."""
    slots = slots_of(1, ())
    slots.expect("stock", 10.0, 0.0, ("one", "two", "three"))
    slots.join("stock", "one", 1, 0.0)
    ticket = of_unit(slots, "u1")
    pool = slots.pool("stock")
    assert pool.holders() is None
    slots.leave("two")
    assert pool.holders() is None
    slots.join("stock", "three", 1, 1.0)
    of_unit(slots, "u2")
    assert pool.holders() == [ticket.unit, "u2"]


def test_the_holder_of_an_exclusive_key_is_named() -> None:
    """D4: it keeps the key while it rests; a holder whose unit is not known yet is nobody."""
    slots = slots_of(8)
    call = call_of(exclusive="o1")
    assert slots.key_holder(call) is None
    assert slots.key_holder(call_of(agent="nobody", exclusive="o1")) is None
    holder = seated(slots, call)
    assert slots.key_holder(call) is None
    holder.unit = "u1"
    slots.rest(holder, 1.0)
    assert slots.key_holder(call) == "u1"
    parked(slots, call_of("second", exclusive="o1"), 1.0)
    beside = slots.adopt(call, "one", 1.0)
    beside.unit = "u2"
    slots.settle(holder, OK, 2.0)
    assert slots.key_holder(call) == "u2"
    assert slots.key_holder(call_of(exclusive="o2")) is None
    assert slots.key_holder(call_of()) is None
