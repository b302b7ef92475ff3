"""Slots and the queue: who gets one, who waits, who is refused."""

from __future__ import annotations

import pytest

from agentgate.core.policy import Ticket
from agentgate.core.slots import SlotOptions, Slots
from tests.core.slot_stage import FAR, OK, call_of, instances_of, parked, refused, seated, slots_of, wakes


def test_the_least_busy_instance_takes_the_call() -> None:
    """B11: least outstanding first, equals in turn, none beyond its limit."""
    slots = slots_of(2, ("one", "two", "three"))
    assert slots.ask(call_of(), 0.0) is None
    assert [seated(slots).instance for _ in range(6)] == ["one", "two", "three", "one", "two", "three"]
    parked(slots)
    assert slots.outstanding("stock") == 6


def test_equals_are_taken_in_turn() -> None:
    """An instance that joins late does not get everything because it has got nothing yet."""
    slots = slots_of(8, ("one", "two"))
    for _ in range(50):
        slots.settle(seated(slots), OK, 0.0)
    slots.join("stock", "three", 8, 0.0)
    used = []
    for _ in range(6):
        ticket = seated(slots)
        used.append(ticket.instance)
        slots.settle(ticket, OK, 0.0)
    assert sorted(used) == ["one", "one", "three", "three", "two", "two"]


def test_the_first_free_instance_takes_the_head() -> None:
    """B11: one queue an agent; higher priority first, first come first served within it."""
    slots = slots_of()
    running = seated(slots)
    for name, priority in (("low", 2), ("first", 5), ("second", 5), ("high", 7), ("above all", 99)):
        parked(slots, call_of(name, priority=priority))
    order = []
    for _ in range(5):
        slots.settle(running, OK, 0.0)
        (wake,) = slots.tick(0.0)
        order.append(wake.ticket.call.id)
        running = wake.ticket  # type: ignore[assignment]  # Slots hands out SlotTickets
    assert order == ["above all", "high", "first", "second", "low"]


def test_a_newcomer_does_not_pass_those_who_wait() -> None:
    """Between a slot's end and the next tick a newcomer of the same priority has to stand in line."""
    slots = slots_of()
    running = seated(slots)
    parked(slots, call_of("waiting"))
    slots.settle(running, OK, 0.0)
    assert slots.ask(call_of(), 0.0) is None
    parked(slots, call_of("newcomer"))
    assert wakes(slots) == {"waiting": "one"}


def test_a_more_urgent_newcomer_may_pass() -> None:
    """Higher priority first holds for newcomers as well."""
    slots = slots_of()
    running = seated(slots)
    parked(slots, call_of("waiting"))
    slots.settle(running, OK, 0.0)
    assert seated(slots, call_of("urgent", priority=9)).instance == "one"
    assert wakes(slots) == {}


def test_a_taken_over_place_counts() -> None:
    """C2: who takes over the queue place of another caller of the same flight stands where that one stood."""
    slots = slots_of()
    running = seated(slots)
    owner = parked(slots, call_of("owner"))
    parked(slots, call_of("behind"))
    slots.abandon(owner, 0.0)
    heir = parked(slots, call_of("heir", place=owner.place))
    assert heir.place == owner.place
    slots.settle(running, OK, 0.0)
    assert wakes(slots) == {"heir": "one"}


def test_a_taken_over_place_counts_at_the_door_too() -> None:
    """With a slot free and others waiting, only an older place of the same priority goes straight in."""
    slots = slots_of()
    running = seated(slots)
    owner = parked(slots, call_of("owner"))
    behind = parked(slots, call_of("behind"))
    slots.abandon(owner, 0.0)
    slots.settle(running, OK, 0.0)
    parked(slots, call_of("later", place=behind.place + 1))
    parked(slots, call_of("less urgent", priority=3, place=owner.place))
    assert seated(slots, call_of("heir", place=owner.place)).instance == "one"


def test_nobody_waits_beyond_its_deadline() -> None:
    """B7: expired work is refused before the target sees it; nothing was sent (FAILURES F126)."""
    slots = slots_of()
    running = seated(slots)
    parked(slots, call_of("short", deadline=2.0))
    parked(slots, call_of("long", deadline=3.0))
    slots.tick(0.0)
    assert slots.next_deadline() == 2.0
    slots.settle(running, OK, 2.0)
    (expired, admitted) = slots.tick(2.0)
    assert expired.decision.error.code == "deadline_exceeded"  # type: ignore[union-attr]  # the test is the check
    assert expired.decision.error.sent is False  # type: ignore[union-attr]  # the test is the check
    assert admitted.ticket.call.id == "long"
    assert refused(slots, call_of(deadline=2.0), 2.0).code == "deadline_exceeded"


def test_expired_work_is_dropped_in_a_row() -> None:
    """A queue of 500 calls whose deadlines have passed is dropped, and only live ones run (FAILURES F126)."""
    slots = slots_of()
    running = seated(slots)
    for number in range(500):
        parked(slots, call_of(f"late {number}", deadline=1.0))
    parked(slots, call_of("live", priority=0))
    slots.settle(running, OK, 1.5)
    woken = wakes(slots, 1.5)
    assert woken.pop("live") == "one"
    assert len(woken) == 500
    assert set(woken.values()) == {"deadline_exceeded"}


def test_a_full_queue_refuses_with_a_time() -> None:
    """B14: the queue is bounded; at the bound the answer is overloaded, and says when to come back."""
    slots = slots_of(queue_max=3)
    seated(slots)
    for number in range(3):
        parked(slots, call_of(f"{number}"))
    error = refused(slots)
    assert (error.code, error.retry, error.sent) == ("overloaded", "after", False)
    assert error.retry_after_ms == 4000  # four calls of one second each, as long as nothing is known
    assert slots.queued("stock") == 3


def test_urgent_calls_take_the_room_of_the_newest_less_urgent_one() -> None:
    """B11: at the bound a more urgent call displaces the newest of the lowest priority."""
    slots = slots_of(queue_max=3)
    seated(slots)
    for name, priority in (("a", 5), ("b", 2), ("c", 2)):
        parked(slots, call_of(name, priority=priority))
    parked(slots, call_of("urgent", priority=5))
    assert slots.next_deadline() == 0.0
    assert slots.queued("stock") == 3
    assert wakes(slots) == {"c": "overloaded"}
    assert refused(slots, call_of(priority=2)).code == "overloaded"


def test_without_a_queue_a_busy_agent_refuses() -> None:
    """`queue_max` 0 means that nobody waits (FAILURES F48)."""
    slots = slots_of(queue_max=0)
    running = seated(slots)
    assert refused(slots).code == "overloaded"
    slots.settle(running, OK, 1.0)
    assert seated(slots).instance == "one"


def test_what_cannot_meet_its_deadline_is_refused_at_once() -> None:
    """B11: with the usual time a slot is held known, a wait that must outlast the deadline is not begun."""
    slots = slots_of(2)
    for _ in range(20):
        slots.settle(seated(slots, now=0.0), OK, 4.0)
    for _ in range(2):
        seated(slots, now=10.0)
    parked(slots, call_of("in time", deadline=13.0), 10.0)  # the first in line waits for two seconds
    error = refused(slots, call_of(deadline=13.0), 10.0)
    assert (error.code, error.retry_after_ms) == ("overloaded", 4000)
    parked(slots, call_of("more urgent", deadline=13.0, priority=9), 10.0)
    parked(slots, call_of("heir", deadline=13.0, place=1), 10.0)


def test_many_slots_make_a_wait_short() -> None:
    """B11: what stands before a call is shared by all slots, so it may wait although one slot would not do."""
    slots = slots_of(8)
    for _ in range(20):
        slots.settle(seated(slots, now=0.0), OK, 0.02)
    for _ in range(8):
        seated(slots, now=10.0)
    for number in range(10):
        parked(slots, call_of(f"{number}", deadline=10.05), 10.0)
    slots.away("one")
    parked(slots, call_of("when it is back", deadline=10.05), 10.0)  # nobody can tell


def test_little_knowledge_refuses_nobody() -> None:
    """Until enough calls have ended, the expected wait is a guess and refuses nobody."""
    slots = slots_of()
    for _ in range(19):
        slots.settle(seated(slots, now=0.0), OK, 100.0)
    seated(slots)
    parked(slots, call_of(deadline=1.0))


@pytest.mark.parametrize("end", ["settle", "abandon"])
@pytest.mark.parametrize("stage", ["seated", "parked", "told"])
def test_every_ticket_is_given_back_exactly_once(end: str, stage: str) -> None:
    """A second settle or abandon raises, and nothing is counted twice (FAILURES kind 3)."""
    slots = slots_of()
    ticket = seated(slots)
    if stage != "seated":
        ticket = parked(slots, call_of("waiting"))
    if stage == "told":
        assert slots.evict("stock", None, refused(slots, call_of(deadline=0.0))) == 1

    def finish() -> None:
        if end == "settle":
            slots.settle(ticket, OK, 0.0)
        else:
            slots.abandon(ticket, 0.0)

    finish()
    with pytest.raises(AssertionError):
        finish()
    assert slots.queued("stock") == 0
    assert slots.outstanding("stock") == (0 if stage == "seated" else 1)
    assert wakes(slots) == {}


def test_a_refused_ticket_is_given_back_already() -> None:
    """A ticket that tick refused must not be given back again."""
    slots = slots_of()
    seated(slots)
    waiting = parked(slots, call_of("waiting", deadline=1.0))
    assert wakes(slots, 1.0) == {"waiting": "deadline_exceeded"}
    with pytest.raises(AssertionError):
        slots.abandon(waiting, 1.0)


def test_a_ticket_of_another_policy_is_refused() -> None:
    """Mixing up tickets is a defect and raises."""
    with pytest.raises(AssertionError):
        slots_of().settle(Ticket(call_of()), OK, 0.0)


def test_the_time_in_the_queue_is_known() -> None:
    """H1: a span says how long the call waited for its slot."""
    slots = slots_of()
    running = seated(slots, now=1.0)
    waiting = parked(slots, call_of("waiting"), 2.0)
    slots.settle(running, OK, 5.0)
    slots.tick(5.0)
    assert (slots.queued_s(running), slots.queued_s(waiting)) == (0.0, 3.0)


def test_eviction_empties_the_queue_of_one_type_or_of_all() -> None:
    """B2: an opening takes the calls of its task type out of the queue; the agent's own breaker takes all."""
    slots = slots_of()
    seated(slots)
    for name, task_type in (("a", "look"), ("b", "reserve"), ("c", "look"), ("d", "count")):
        parked(slots, call_of(name, task_type=task_type))
    assert (slots.queued("stock", "look"), slots.queued("stock", "none"), slots.queued("stock")) == (2, 0, 4)
    error = refused(slots, call_of(deadline=0.0))
    assert slots.evict("stock", "look", error) == 2
    assert slots.evict("stock", "none", error) == 0
    assert slots.evict("nobody", None, error) == 0
    assert set(wakes(slots)) == {"a", "c"}
    assert slots.evict("stock", None, error) == 2
    assert set(wakes(slots)) == {"b", "d"}
    assert (slots.queued("stock"), slots.queued("nobody")) == (0, 0)


def test_a_retry_avoids_the_instance_that_failed() -> None:
    """B5: it goes elsewhere, waits for a slot elsewhere, and comes back only to the only one there is."""
    slots = slots_of(1, ("one", "two"))
    assert seated(slots, call_of(avoid="one")).instance == "two"
    parked(slots, call_of("retry", avoid="one"))
    assert seated(slots, call_of()).instance == "one"
    slots.drain("two")
    parked(slots, call_of("again", avoid="one"))
    assert wakes(slots) == {}
    assert instances_of(slots)["one"].outstanding == 1


def test_an_avoided_instance_serves_those_behind() -> None:
    """Who avoids the free instance lets others pass, and takes the next slot elsewhere."""
    slots = slots_of(1, ("one", "two"))
    first, second = seated(slots), seated(slots)
    parked(slots, call_of("retry", avoid="one"))
    parked(slots, call_of("other"))
    slots.settle(first, OK, 0.0)
    assert wakes(slots) == {"other": "one"}
    slots.settle(second, OK, 0.0)
    assert wakes(slots) == {"retry": "two"}


def test_an_avoided_instance_stays_free_when_everybody_avoids_it() -> None:
    """Waiting for another instance is what avoiding means; a newcomer may use the slot meanwhile."""
    slots = slots_of(1, ("one", "two"))
    first, _ = seated(slots), seated(slots)
    parked(slots, call_of("retry", avoid="one"))
    slots.settle(first, OK, 0.0)
    assert wakes(slots) == {}
    assert seated(slots).instance == "one"


def test_an_instance_is_avoided_for_a_moment_only() -> None:
    """D2: who holds the others may wait for this very call, so it takes the slot that there is."""
    slots = slots_of(1, ("one", "two"), avoid_s=1.0)
    first, _ = seated(slots), seated(slots)
    parked(slots, call_of("retry", avoid="one"))
    parked(slots, call_of("late", avoid="one", deadline=1.0))
    slots.settle(first, OK, 0.5)
    assert wakes(slots, 0.5) == {}
    assert slots.next_deadline() == 1.0
    assert wakes(slots, 1.0) == {"late": "deadline_exceeded", "retry": "one"}


def test_the_only_instance_is_not_avoided() -> None:
    """With one instance left, avoiding it would mean to wait in vain."""
    slots = slots_of()
    running = seated(slots, call_of(avoid="one"))
    parked(slots, call_of("first", avoid="one"))
    slots.settle(running, OK, 0.0)
    parked(slots, call_of("second", avoid="one"))
    assert wakes(slots) == {"first": "one"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency_default": 0},
        {"queue_max": -1},
        {"ejection_faults": 0},
        {"eject_s": 0.0},
        {"eject_s": 90.0},
        {"ejected_share_max": 1.5},
        {"holds_min": None},
    ],
)
def test_options_are_checked_when_they_are_made(wrong: dict[str, float]) -> None:
    """A blank, absurd or contradictory setting is refused with its name (FAILURES F26)."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SlotOptions(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_a_limit_is_never_reached_by_default_numbers() -> None:
    """An instance that declares no concurrency gets the default."""
    slots = Slots(SlotOptions(concurrency_default=3))
    slots.join("stock", "one", None, 0.0)
    for _ in range(3):
        seated(slots)
    parked(slots)
    assert instances_of(slots)["one"].limit == 3
    assert slots.admit(call_of(deadline=FAR), 0.0) is not None
