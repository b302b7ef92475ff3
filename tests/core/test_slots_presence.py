"""Instances that come and go, and agents without any."""

from __future__ import annotations

import pytest

from tests.core.slot_stage import OK, call_of, instances_of, parked, refused, seated, slots_of, wakes


def test_an_unknown_agent_is_refused() -> None:
    """Nobody there and nobody expected: no_route, with a time."""
    slots = slots_of(instances=())
    error = refused(slots)
    assert (error.code, error.retry, error.retry_after_ms) == ("no_route", "after", 3000)
    assert (slots.outstanding("stock"), slots.states(0.0)) == (0, [])


@pytest.mark.parametrize("leave", ["away", "drain"])
def test_while_an_instance_is_known_calls_wait_for_it(leave: str) -> None:
    """A6: a closed link or a drain is no reason to fail; calls wait for it, or for its successor."""
    slots = slots_of()
    running = seated(slots)
    getattr(slots, leave)("one")
    parked(slots, call_of("waiting"))
    slots.settle(running, OK, 1.0)
    assert wakes(slots, 1.0) == {}  # it takes nothing new
    slots.join("stock", "two", 1, 2.0)
    assert wakes(slots, 2.0) == {"waiting": "two"}


def test_an_instance_that_comes_back_goes_on() -> None:
    """A8: what it runs still counts after it was away."""
    slots = slots_of(2)
    running = seated(slots)
    slots.away("one")
    slots.join("stock", "one", 2, 1.0)
    assert instances_of(slots)["one"].outstanding == 1
    seated(slots)
    parked(slots)
    slots.settle(running, OK, 1.0)
    assert slots.outstanding("stock") == 1


def test_when_the_last_instance_leaves_the_queue_is_told() -> None:
    """A8: routes withdrawn, nobody waits for an agent that is gone; its slots are given back as usual."""
    slots = slots_of()
    running = seated(slots)
    parked(slots, call_of("waiting"))
    slots.leave("one")
    assert wakes(slots) == {"waiting": "no_route"}
    assert slots.states(0.0) == []
    slots.settle(running, OK, 1.0)
    assert refused(slots).code == "no_route"


def test_an_expected_agent_parks_calls_until_then() -> None:
    """A4: an agent known before a restart: calls queue through it, and are refused when it does not come."""
    slots = slots_of(instances=())
    slots.expect("stock", 10.0, 0.0)
    parked(slots, call_of("early"))
    assert slots.next_deadline() == 0.0
    assert wakes(slots) == {}
    assert slots.next_deadline() == 10.0
    assert wakes(slots, 10.0) == {"early": "no_route"}
    assert refused(slots, now=10.0).code == "no_route"
    assert slots.states(10.0) == []
    assert slots.next_deadline() is None


def test_an_expected_agent_that_comes_serves_those_who_waited() -> None:
    """A4: after a restart of the gate nothing is lost but a moment."""
    slots = slots_of(instances=())
    slots.expect("stock", 10.0, 0.0)
    slots.expect("stock", 5.0, 0.0)  # the later time stands
    slots.expect("never", 0.0, 0.0)
    parked(slots, call_of("early"))
    slots.join("stock", "one", 1, 7.0)
    assert wakes(slots, 7.0) == {"early": "one"}
    assert wakes(slots, 10.0) == {}
    assert [shown.agent for shown in slots.states(10.0)] == ["stock"]


def test_an_agent_may_be_expected_while_it_leaves() -> None:
    """G1: a supervised restart is bridged when somebody says that it will be back."""
    slots = slots_of()
    slots.leave("one")
    slots.expect("stock", 3.0, 0.0)
    parked(slots, call_of("waiting"))
    slots.join("stock", "two", 1, 1.0)
    assert wakes(slots, 1.0) == {"waiting": "two"}


def test_an_agent_that_has_expired_may_still_join_in_the_same_moment() -> None:
    """Who waits for an expected agent is served when it comes before anybody noticed that its time was over."""
    slots = slots_of(instances=())
    slots.expect("stock", 3.0, 0.0)
    parked(slots, call_of("waiting"))
    slots.join("stock", "one", 1, 4.0)
    assert wakes(slots, 4.0) == {"waiting": "one"}


def test_a_unit_found_running_counts_at_once() -> None:
    """C4: a rejoined unit holds a slot, over the limit if need be, and nobody new is admitted meanwhile."""
    slots = slots_of(2)
    seated(slots)
    adopted = [slots.adopt(call_of(agent=""), "one", 0.0) for _ in range(3)]
    shown = instances_of(slots)["one"]
    assert (shown.outstanding, shown.adopted, shown.limit) == (4, 3, 2)
    parked(slots, call_of("waiting"))
    for ticket in adopted[:2]:
        slots.settle(ticket, OK, 1.0)
        assert wakes(slots, 1.0) == {}
    slots.settle(adopted[2], OK, 1.0)
    assert wakes(slots, 1.0) == {"waiting": "one"}
    assert instances_of(slots)["one"].adopted == 0


def test_only_a_joined_instance_adopts() -> None:
    """Adopting for a process that is not there is a defect of the caller."""
    with pytest.raises(KeyError):
        slots_of().adopt(call_of(), "nobody", 0.0)


def test_a_smaller_limit_keeps_what_runs() -> None:
    """An instance that comes back with a smaller limit keeps its units and gets nothing new until there is room."""
    slots = slots_of(3)
    running = [seated(slots) for _ in range(3)]
    slots.join("stock", "one", 1, 0.0)
    parked(slots, call_of("waiting"))
    for ticket in running:
        assert wakes(slots) == {}
        slots.settle(ticket, OK, 0.0)
    assert wakes(slots) == {"waiting": "one"}


def test_a_process_belongs_to_one_agent() -> None:
    """When it comes back under another agent's name, it has left the first."""
    slots = slots_of()
    slots.join("order", "one", 1, 0.0)
    slots.tick(0.0)
    assert [(shown.agent, len(shown.instances)) for shown in slots.states(0.0)] == [("order", 1)]


def test_unknown_instances_are_ignored() -> None:
    """A note about a process that nobody knows changes nothing."""
    slots = slots_of()
    for note in (slots.away, slots.drain, slots.leave):
        note("nobody")
    assert list(instances_of(slots)) == ["one"]


def test_forgotten_agents_leave_nothing_behind() -> None:
    """B14: a thousand agents that came and went leave no trace (FAILURES F110)."""
    slots = slots_of(instances=())
    for number in range(1000):
        slots.join(f"agent {number}", f"instance {number}", 1, 0.0)
        slots.leave(f"instance {number}")
        slots.expect(f"agent {number}", 5.0, 0.0)
    slots.tick(5.0)
    assert slots.states(5.0) == []
    assert slots.next_deadline() is None


def test_what_a_forgotten_agent_left_behind_does_not_touch_its_successor() -> None:
    """The alarm of an instance that was put out long ago finds another agent of the same name, and leaves it alone."""
    slots = slots_of(8, ("one", "two"), ejection_faults=1)
    slots.record(seated(slots), "fault", 0.0)
    for name in ("one", "two"):
        slots.leave(name)
    assert wakes(slots) == {}
    slots.join("stock", "three", 1, 1.0)
    assert wakes(slots, 1.0) == {}
    assert slots.next_deadline() == 10.0
    assert wakes(slots, 10.0) == {}
    assert list(instances_of(slots)) == ["three"]
