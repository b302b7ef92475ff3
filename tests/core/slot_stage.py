"""A stage for slots: calls by name, and what became of them."""

from __future__ import annotations

from typing import Any

from agentgate.core.policy import Admit, Park, Refuse, Wake
from agentgate.core.slots import InstanceState, SlotOptions, Slots, SlotTicket
from agentgate.model import Call, Outcome, Problem

OK = Outcome(value=1)
FAR = 1000.0


def call_of(name: str = "c", **fields: Any) -> Call:
    return Call(**{"id": name, "target": "stock", "task_type": "look", "agent": "stock", "deadline": FAR, **fields})


def slots_of(concurrency: int = 1, instances: tuple[str, ...] = ("one",), **options: Any) -> Slots:
    slots = Slots(SlotOptions(**options))
    for instance in instances:
        slots.join("stock", instance, concurrency, 0.0)
    slots.tick(0.0)
    return slots


def seated(slots: Slots, call: Call | None = None, now: float = 0.0) -> SlotTicket:
    decision = slots.admit(call or call_of(), now)
    assert isinstance(decision, Admit), decision
    assert isinstance(decision.ticket, SlotTicket)
    return decision.ticket


def parked(slots: Slots, call: Call | None = None, now: float = 0.0) -> SlotTicket:
    decision = slots.admit(call or call_of(), now)
    assert isinstance(decision, Park), decision
    assert isinstance(decision.ticket, SlotTicket)
    return decision.ticket


def refused(slots: Slots, call: Call | None = None, now: float = 0.0) -> Problem:
    """`ask` and `admit` refuse alike."""
    asked = slots.ask(call or call_of(), now)
    decision = slots.admit(call or call_of(), now)
    assert isinstance(decision, Refuse), decision
    assert asked == decision.error
    return decision.error


def wakes(slots: Slots, now: float = 0.0) -> dict[str, str]:
    """Who was woken by a tick: the instance it got, or the code it was refused with."""
    return {wake.ticket.call.id: answer_of(wake) for wake in slots.tick(now)}


def answer_of(wake: Wake) -> str:
    assert isinstance(wake.ticket, SlotTicket)
    return wake.decision.error.code if isinstance(wake.decision, Refuse) else wake.ticket.instance


def instances_of(slots: Slots, agent: str = "stock", now: float = 0.0) -> dict[str, InstanceState]:
    return {item.name: item for shown in slots.states(now) if shown.agent == agent for item in shown.instances}
