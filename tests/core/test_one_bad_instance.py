"""The bar: one of three instances fails at once, and neither the callers nor the agent's breaker notice."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest
from msgspec.structs import replace

from agentgate.core.breaker import BreakerOptions
from agentgate.core.breakers import Breakers, BreakerTicket
from agentgate.core.policy import Admit, Refuse
from agentgate.core.slots import SlotOptions, Slots, SlotTicket
from agentgate.core.verdict import instance_verdict
from agentgate.model import Call, Outcome, failure

CALLS = 2000
IN_FLIGHT = 24
ATTEMPTS_MAX = 3


@dataclass
class Bench:
    """Callers, three instances and the two policies, wired as the gateway wires them, in simulated time."""

    handle: Callable[[str, float], tuple[float, Outcome]]  # instance, now -> duration, outcome
    random: Random
    now: float = 0.0
    begun: int = 0
    succeeded: int = 0
    failed: int = 0
    states_seen: set[str] = field(default_factory=set)
    runs: dict[str, int] = field(default_factory=dict)
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    serial: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.slots = Slots(SlotOptions())
        self.breakers = Breakers(BreakerOptions(), self.random.random)
        for instance in ("one", "two", "three"):
            self.slots.join("stock", instance, 8, self.now)

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.serial), what))

    def run(self) -> None:
        for _ in range(IN_FLIGHT):
            self.begin()
        while self.events:
            self.now, _, what = heapq.heappop(self.events)
            what()
            self.states_seen.add(self.breakers.state("stock", "look", self.now))

    def begin(self) -> None:
        if self.begun < CALLS:
            self.begun += 1
            call = Call(id=f"c{self.begun}", target="stock", task_type="look", agent="stock", effect="read")
            self.attempt(replace(call, deadline=self.now + 30.0, attempt=1))

    def attempt(self, call: Call) -> None:
        decision = self.slots.admit(call, self.now)
        assert not isinstance(decision, Refuse)
        if isinstance(decision, Admit):
            assert isinstance(decision.ticket, SlotTicket)
            self.dispatch(decision.ticket)

    def dispatch(self, slot: SlotTicket) -> None:
        decision = self.breakers.admit(slot.call, self.now)
        if isinstance(decision, Refuse):
            self.slots.abandon(slot, self.now)
            self.end(succeeded=False)
            return
        assert isinstance(decision.ticket, BreakerTicket)
        slot.breaker = decision.ticket
        self.runs[slot.instance] = self.runs.get(slot.instance, 0) + 1
        duration_s, outcome = self.handle(slot.instance, self.now)
        self.at(self.now + duration_s, lambda: self.answered(slot, outcome))

    def answered(self, slot: SlotTicket, outcome: Outcome) -> None:
        assert slot.breaker is not None
        health = self.slots.record(slot, instance_verdict(outcome), self.now)
        self.breakers.retract([ticket.breaker for ticket in health.retracted if ticket.breaker], self.now)
        if health.counts:
            self.breakers.settle(slot.breaker, outcome, self.now)
        else:
            self.breakers.skip(slot.breaker, self.now)
        self.slots.settle(slot, outcome, self.now)
        call = slot.call
        if outcome.ok or call.attempt == ATTEMPTS_MAX:
            self.end(succeeded=outcome.ok)
        else:
            again = replace(call, attempt=call.attempt + 1, avoid=slot.instance)
            backoff_s = 0.5 * 2 ** (call.attempt - 1) + 0.2 * self.random.random()
            self.at(self.now + backoff_s, lambda: self.attempt(again))
        for wake in self.slots.tick(self.now):
            assert isinstance(wake.ticket, SlotTicket)
            assert isinstance(wake.decision, Admit)
            self.dispatch(wake.ticket)

    def end(self, *, succeeded: bool) -> None:
        self.succeeded += succeeded
        self.failed += not succeeded
        self.at(self.now, self.begin)


RAISED = failure("handler_error", sent=True)


def raises_at_once(instance: str, _now: float) -> tuple[float, Outcome]:
    return (0.0001, RAISED) if instance == "two" else (0.02, Outcome(value=1))


def raises_after_a_while(instance: str, now: float) -> tuple[float, Outcome]:
    return raises_at_once(instance, now) if now > 0.5 else (0.02, Outcome(value=1))


def raises_slowly(instance: str, _now: float) -> tuple[float, Outcome]:
    return (0.1, RAISED) if instance == "two" else (0.02, Outcome(value=1))


def raises_for_a_second(instance: str, now: float) -> tuple[float, Outcome]:
    return raises_at_once(instance, now) if now < 1.0 else (0.02, Outcome(value=1))


@pytest.mark.parametrize("handle", [raises_at_once, raises_after_a_while, raises_slowly, raises_for_a_second])
@pytest.mark.parametrize("seed", range(3))
def test_one_bad_instance_of_three_is_not_felt(
    handle: Callable[[str, float], tuple[float, Outcome]], seed: int
) -> None:
    """B2: 2 000 reads, 24 in flight: at least 99 % succeed, and no breaker of the agent ever leaves closed."""
    bench = Bench(handle, Random(seed))
    bench.run()
    assert bench.succeeded + bench.failed == CALLS
    assert bench.succeeded >= 0.99 * CALLS
    assert bench.states_seen == {"closed"}
    assert bench.slots.outstanding("stock") == bench.slots.queued("stock") == 0


def test_an_agent_that_fails_as_a_whole_is_the_breakers_business() -> None:
    """B2: when all three instances fail, ejection does not hide it: the breaker opens."""
    bench = Bench(lambda _instance, _now: (0.001, RAISED), Random(0))
    bench.run()
    assert "open" in bench.states_seen
    assert bench.succeeded == 0
    assert sum(bench.runs.values()) < 100
