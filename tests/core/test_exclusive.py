"""Exclusive keys by example: one at a time for each object, and nobody else is held up."""

from __future__ import annotations

import pytest

from agentgate.core.policy import Admit, Park
from agentgate.core.slots import SlotOptions, Slots, SlotTicket
from agentgate.model import Call, Outcome

DONE = Outcome(value=1)


def slots_of(limit: int = 4) -> Slots:
    slots = Slots(SlotOptions())
    slots.join("bank", "one", limit, 0.0)
    return slots


def work(key: str = "", priority: int = 5) -> Call:
    return Call(
        id="c", target="bank", agent="bank", task_type="ship", exclusive=key, priority=priority, deadline=1000.0
    )


def admitted(slots: Slots, call: Call) -> SlotTicket:
    decision = slots.admit(call, 0.0)
    assert isinstance(decision, Admit)
    assert isinstance(decision.ticket, SlotTicket)
    return decision.ticket


def parked(slots: Slots, call: Call) -> SlotTicket:
    decision = slots.admit(call, 0.0)
    assert isinstance(decision, Park)
    assert isinstance(decision.ticket, SlotTicket)
    return decision.ticket


def woken(slots: Slots) -> list[SlotTicket]:
    wakes = slots.tick(0.0)
    assert all(isinstance(wake.decision, Admit) for wake in wakes)
    return [wake.ticket for wake in wakes if isinstance(wake.ticket, SlotTicket)]


def test_one_at_a_time_for_each_key() -> None:
    """DESIGN 4.3: calls of one key follow one another in order; other keys, and calls without one, pass them."""
    slots = slots_of()
    first = admitted(slots, work("o1"))
    second, third = parked(slots, work("o1")), parked(slots, work("o1"))
    other, free = admitted(slots, work("o2")), admitted(slots, work())
    assert woken(slots) == []
    slots.settle(first, DONE, 0.0)
    assert woken(slots) == [second]
    slots.abandon(second, 0.0)
    assert woken(slots) == [third]
    for ticket in (third, other, free):
        slots.settle(ticket, DONE, 0.0)
    assert slots.outstanding("bank") == 0


def test_who_waits_for_a_key_holds_nobody_up() -> None:
    """DESIGN 4.3: with every slot taken, the call at the head is passed over as long as its key is held."""
    slots = slots_of(limit=2)
    holder, running = admitted(slots, work("o1")), admitted(slots, work())
    waits, behind = parked(slots, work("o1", priority=9)), parked(slots, work())
    slots.settle(running, DONE, 0.0)
    assert woken(slots) == [behind]
    slots.settle(holder, DONE, 0.0)
    assert woken(slots) == [waits]


def test_a_newcomer_does_not_pass_one_who_waits_for_the_same_key() -> None:
    """First come, first served holds for a key as it does for a slot."""
    slots = slots_of()
    holder = admitted(slots, work("o1"))
    waits = parked(slots, work("o1"))
    slots.settle(holder, DONE, 0.0)
    late = parked(slots, work("o1"))
    assert woken(slots) == [waits]
    slots.settle(waits, DONE, 0.0)
    assert woken(slots) == [late]


def test_a_unit_that_does_not_stop_keeps_its_key() -> None:
    """A zombie's slot is free, its key is not until it has really ended, and then the next one is served at once."""
    slots = slots_of(limit=1)
    zombie = admitted(slots, work("o1"))
    slots.overstay(zombie, 0.0)
    waits = parked(slots, work("o1"))
    other = admitted(slots, work("o2"))
    slots.settle(other, DONE, 0.0)
    assert woken(slots) == []
    slots.settle(zombie, DONE, 0.0)
    assert slots.next_deadline() == 0.0
    assert woken(slots) == [waits]
    with pytest.raises(AssertionError):
        slots.overstay(zombie, 0.0)


def test_a_unit_that_may_still_run_holds_its_key() -> None:
    """After a restart the key is held until the unit's process is back and it ends, or until it is given up."""
    slots = slots_of()
    found, lost = slots.hold(work("o1"), 0.0), slots.hold(work("o2"), 0.0)
    first, second = parked(slots, work("o1")), parked(slots, work("o2"))
    assert woken(slots) == []
    slots.settle(lost, DONE, 0.0)
    assert woken(slots) == [second]
    assert slots.adopt(work("o1"), "one", 0.0, found) is found
    assert slots.outstanding("bank") == 2
    assert woken(slots) == []
    slots.settle(found, DONE, 0.0)
    assert woken(slots) == [first]


def test_keys_are_held_while_nobody_of_the_agent_is_there() -> None:
    """What may still run counts before its agent is back, and is forgotten with it afterwards."""
    slots = Slots(SlotOptions())
    held = slots.hold(work("o1"), 0.0)
    slots.join("bank", "one", 4, 0.0)
    slots.leave("one")
    assert woken(slots) == []
    slots.join("bank", "two", 4, 0.0)
    waits = parked(slots, work("o1"))
    assert woken(slots) == []
    slots.settle(held, DONE, 0.0)
    assert woken(slots) == [waits]
    slots.settle(waits, DONE, 0.0)
    slots.leave("two")
    assert woken(slots) == []
    last = slots.hold(work("o1"), 0.0)
    slots.settle(last, DONE, 0.0)
    assert (woken(slots), slots.states(0.0)) == ([], [])


def test_what_is_found_running_counts_beside_others() -> None:
    """A unit that turns up beside another one of its key is not refused; the key is free when both have ended."""
    slots = slots_of()
    first = admitted(slots, work("o1"))
    found = slots.adopt(work("o1"), "one", 0.0)
    waits = parked(slots, work("o1"))
    slots.settle(first, DONE, 0.0)
    assert woken(slots) == []
    slots.settle(found, DONE, 0.0)
    assert woken(slots) == [waits]


def test_a_ticket_of_a_forgotten_agent_ends_without_harm() -> None:
    """An overstaying unit whose agent has left gives back what is left to give."""
    slots = slots_of()
    holder, plain = admitted(slots, work("o1")), admitted(slots, work())
    slots.leave("one")
    slots.overstay(holder, 0.0)
    slots.settle(holder, DONE, 0.0)
    assert (slots.tick(0.0), slots.states(0.0)) == ([], [])
    slots.overstay(plain, 0.0)
    slots.settle(plain, DONE, 0.0)
    assert slots.tick(0.0) == []


def test_observing_the_limits_does_not_suspend_the_keys() -> None:
    """DESIGN 3: locks cannot be observed only; a call over the limit runs, one whose key is held waits."""
    slots = Slots(SlotOptions(), observes=True)
    slots.join("bank", "one", 1, 0.0)
    first, squeezed = admitted(slots, work("o1")), admitted(slots, work("o2"))
    assert (first.would, squeezed.would) == ("", "would_queue")
    waits = parked(slots, work("o2"))
    slots.overstay(squeezed, 0.0)
    assert woken(slots) == []
    slots.settle(squeezed, DONE, 0.0)
    assert woken(slots) == [waits]
    slots.settle(waits, DONE, 0.0)
    slots.settle(first, DONE, 0.0)
    assert slots.outstanding("bank") == 0
