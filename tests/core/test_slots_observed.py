"""Slots in observe mode: nobody waits for room, and what would have been is said (I2)."""

from __future__ import annotations

from typing import Any

from agentgate.core.slots import SlotOptions, Slots
from tests.core.slot_stage import OK, call_of, instances_of, parked, refused, seated, slots_of, wakes


def test_observing_never_waits() -> None:
    """I2: a shadow ticket gets a slot if there is one, never counts past the limit, and says what would have been."""
    slots = slots_of()
    first, second = slots.shadow(call_of(), 0.0), slots.shadow(call_of(), 0.0)
    assert [(ticket.instance, ticket.would) for ticket in (first, second)] == [("one", ""), ("one", "would_queue")]
    assert slots.outstanding("stock") == 1
    slots.settle(second, OK, 0.0)
    assert slots.outstanding("stock") == 1
    slots.settle(first, OK, 0.0)
    assert slots.outstanding("stock") == 0
    slots.drain("one")
    for call in (call_of(), call_of(agent="nobody")):
        lost = slots.shadow(call, 0.0)
        assert lost.instance == ""
        assert lost.would in ("would_queue", "would_overload")
        slots.abandon(lost, 0.0)


def observed(concurrency: int = 1, instances: tuple[str, ...] = ("one", "two"), **options: Any) -> Slots:
    slots = Slots(SlotOptions(**options), observes=True)
    for instance in instances:
        slots.join("stock", instance, concurrency, 0.0)
    return slots


def test_an_observed_limit_makes_nobody_wait() -> None:
    """I2: beyond the limit calls run all the same, spread over the instances, and say whether they would have waited
    or have been refused; what is counted stays within the limit.
    """
    slots = observed(queue_max=0)
    tickets = []
    for _ in range(6):
        assert slots.ask(call_of(), 0.0) is None
        tickets.append(seated(slots))
    assert [ticket.would for ticket in tickets] == ["", "", *["would_overload"] * 4]
    assert sorted(ticket.instance for ticket in tickets) == ["one"] * 3 + ["two"] * 3
    assert slots.outstanding("stock") == 2
    for ticket in tickets:
        slots.settle(ticket, OK, 1.0)
    assert slots.outstanding("stock") == 0
    slots = observed()
    assert [seated(slots).would for _ in range(3)] == ["", "", "would_queue"]


def test_an_observed_limit_waits_for_somebody_to_come() -> None:
    """I2: what can run nowhere waits as ever, and when an instance is back all go on, whatever its limit."""
    slots = observed(instances=("one",))
    slots.away("one")
    assert slots.ask(call_of(), 0.0) is None
    waiting = [parked(slots, call_of(name)) for name in ("a", "b", "c")]
    assert wakes(slots) == {}
    slots.join("stock", "one", 1, 1.0)
    assert wakes(slots, 1.0) == {"a": "one", "b": "one", "c": "one"}
    assert [ticket.would for ticket in waiting] == ["", "would_queue", "would_queue"]
    assert slots.outstanding("stock") == 1
    assert refused(slots, call_of(agent="nobody")).code == "no_route"


def test_a_call_over_an_observed_limit_counts_for_its_instance() -> None:
    """I2: shadow tickets feed statistics: faults of calls without a slot put an instance out like any other, and who
    is out comes last.
    """
    slots = observed(ejection_faults=1)
    for _ in range(4):
        seated(slots)
    over = seated(slots)
    first = over.instance
    slots.record(over, "fault", 0.0)
    assert instances_of(slots)[first].standing == "out"
    assert {seated(slots).instance for _ in range(3)} == {"one", "two"} - {first}


def test_a_unit_without_a_slot_that_overstays_frees_none() -> None:
    """I2, D5: what never counted is not given back; its end counts as that of any other unit."""
    slots = observed(instances=("one",))
    first, second = slots.shadow(call_of(), 0.0), slots.shadow(call_of(), 0.0)
    slots.overstay(second, 1.0)
    assert slots.outstanding("stock") == 1
    slots.settle(second, OK, 2.0)
    slots.settle(first, OK, 2.0)
    assert slots.outstanding("stock") == 0
