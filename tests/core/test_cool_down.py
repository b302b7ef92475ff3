"""The cool-down by example."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest

from agentgate.core.cool_down import AGENTS_MAX, CoolDown, CoolDownOptions
from agentgate.core.policy import Admit, Park, Refuse, Ticket, Wake
from agentgate.errors import Fault
from agentgate.model import Call, Outcome, Problem, failure


def call(agent: str = "b", *, deadline: float = 1000.0) -> Call:
    return Call(id="c", target=agent, task_type="t", agent=agent, deadline=deadline)


def throttled(seconds: float | None, *, code: str = "rate_limited", fault: Fault = "throttled") -> Outcome:
    return Outcome(
        error=Problem(code=code, fault=fault, retry_after_ms=None if seconds is None else round(seconds * 1000))
    )


def cool(policy: CoolDown, seconds: float | None, now: float, agent: str = "b", **how: Any) -> None:
    policy.settle(Ticket(call(agent)), throttled(seconds, **how), now)


def test_a_throttled_agent_is_left_alone_by_everybody() -> None:
    """B4, B13: until the time it named no call goes to it; other agents are not touched."""
    policy = CoolDown(CoolDownOptions())
    assert isinstance(policy.admit(call(), 0.0), Admit)
    cool(policy, 30.0, 0.0)
    assert policy.cooling(10.0) == {"b": 20.0}
    assert isinstance(policy.admit(call(), 29.9), Park)
    assert isinstance(policy.admit(call("c"), 1.0), Admit)
    assert isinstance(policy.admit(call(), 30.0), Admit)
    assert policy.cooling(30.0) == {}


@pytest.mark.parametrize(("first", "then", "end"), [(1.0, 60.0, 60.25), (60.0, 1.0, 60.0)])
def test_the_later_end_holds(first: float, then: float, end: float) -> None:
    """F46: a second wish prolongs a cool-down or leaves it; it never shortens it."""
    policy = CoolDown(CoolDownOptions())
    cool(policy, first, 0.0)
    cool(policy, then, 0.25)
    assert policy.cooling(1.0) == {"b": end - 1.0}


@pytest.mark.parametrize(("deadline", "waits"), [(5.0, True), (3.0, False), (2.0, False)])
def test_a_call_waits_if_the_end_fits_its_deadline(deadline: float, waits: bool) -> None:
    """F47, decision 7: it waits for an end before its deadline, else it fails now and is told the soonest time."""
    policy = CoolDown(CoolDownOptions())
    cool(policy, 3.0, 0.0)
    asked = policy.ask(call(deadline=deadline), 0.5)
    decision = policy.admit(call(deadline=deadline), 0.5)
    if waits:
        assert isinstance(decision, Park)
        assert (decision.until, policy.next_deadline(), asked) == (3.0, 3.0, None)
        assert policy.tick(2.9) == []
        assert policy.tick(3.0) == [Wake(decision.ticket, Admit(decision.ticket))]
        assert (policy.tick(4.0), policy.next_deadline()) == ([], None)
    else:
        assert isinstance(decision, Refuse)
        assert decision.error == asked
        assert (decision.error.code, decision.error.fault) == ("overloaded", "refused")
        assert (decision.error.retry, decision.error.retry_after_ms) == ("after", 2500)


def test_zero_means_zero() -> None:
    """F48: a Retry-After of 0 and a default of 0 cool nothing."""
    policy = CoolDown(CoolDownOptions(default_s=0.0))
    cool(policy, 0.0, 1.0)
    cool(policy, None, 1.0)
    assert isinstance(policy.admit(call(), 1.0), Admit)
    assert policy.ask(call(), 1.0) is None


def test_a_wish_without_a_time_or_without_measure_is_bounded() -> None:
    """Without a time it is the default; a wish of years is honoured for an hour at a time."""
    policy = CoolDown(CoolDownOptions())
    cool(policy, None, 0.0)
    cool(policy, 1e9, 0.0, "c")
    assert policy.cooling(0.0) == {"b": 1.0, "c": 3600.0}


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(value=1),
        throttled(60.0, code="overloaded"),
        throttled(60.0, fault="refused"),
        failure("overloaded", retry_after_s=60.0),
        failure("handler_error"),
        failure("deadline_exceeded", sent=True),
    ],
)
def test_nothing_else_starts_a_cool_down(outcome: Outcome) -> None:
    """DESIGN 4.1: try-later delays one call, and neither faults nor the gate's own refusals are a wish for time."""
    policy = CoolDown(CoolDownOptions())
    policy.settle(Ticket(call()), outcome, 0.0)
    assert policy.cooling(0.0) == {}


def test_waiting_calls_follow_a_moved_end() -> None:
    """F46, F47: when the end moves, who still fits goes on waiting and who no longer does is refused at once."""
    policy = CoolDown(CoolDownOptions())
    cool(policy, 3.0, 0.0)
    short, long = policy.admit(call(deadline=5.0), 0.0), policy.admit(call(deadline=50.0), 0.0)
    assert isinstance(short, Park)
    assert isinstance(long, Park)
    cool(policy, 10.0, 2.0)
    cool(policy, 1.0, 2.0)
    assert policy.next_deadline() == 2.0
    (wake,) = policy.tick(2.0)
    assert wake.ticket is short.ticket
    assert isinstance(wake.decision, Refuse)
    assert wake.decision.error.retry_after_ms == 10_000
    assert (policy.next_deadline(), policy.tick(3.0)) == (12.0, [])
    assert policy.tick(12.0) == [Wake(long.ticket, Admit(long.ticket))]


def test_a_parked_call_that_left_is_not_woken() -> None:
    """Kind 10: abandoning frees the place; an admitted ticket has none to free."""
    policy = CoolDown(CoolDownOptions(parked_max=1))
    admitted = policy.admit(call(), 0.0)
    assert isinstance(admitted, Admit)
    cool(policy, 3.0, 0.0)
    policy.abandon(admitted.ticket, 0.0)
    parked = policy.admit(call(), 0.0)
    assert isinstance(parked, Park)
    assert isinstance(policy.admit(call(), 0.0), Refuse)
    policy.abandon(parked.ticket, 1.0)
    assert isinstance(policy.admit(call(), 1.0), Park)
    assert len(policy.tick(3.0)) == 1


def test_observing_holds_nothing_and_learns() -> None:
    """I2: a shadow ticket says what enforcing would have done, never waits, and its outcome counts."""
    policy = CoolDown(CoolDownOptions())
    ticket = policy.shadow(call(), 0.0)
    assert ticket.would == ""
    policy.settle(ticket, throttled(5.0), 0.0)
    assert policy.shadow(call(), 1.0).would == "would_cool_down"
    assert (policy.next_deadline(), policy.shadow(call(), 5.0).would) == (None, "")


def test_what_is_over_is_forgotten() -> None:
    """F110: an agent that nobody throttles any more leaves no trace after two idle times; one that cools stays."""
    policy = CoolDown(CoolDownOptions(end_max_s=20_000.0))
    policy.tick(0.0)
    cool(policy, 1.0, 1.0, "old")
    cool(policy, 20_000.0, 1.0, "new")
    policy.tick(10_000.0)
    assert policy.cooling(20_000.5) == {"new": 0.5}
    policy.tick(20_000.0)
    policy.tick(40_000.0)
    assert len(policy) == 0


def test_more_agents_than_there_is_room_for() -> None:
    """F110: the map is bounded, and a call parked for an agent that had to be forgotten is still woken."""
    policy = CoolDown(CoolDownOptions())
    for number in range(AGENTS_MAX + 1):
        cool(policy, 9.0, 0.0, f"agent-{number}")
        assert isinstance(policy.admit(call(f"agent-{number}"), 0.0), Park)
    assert len(policy) == AGENTS_MAX
    assert len(policy.tick(9.0)) == AGENTS_MAX + 1


@pytest.mark.parametrize(("field", "value"), [("default_s", -1.0), ("end_max_s", nan), ("parked_max", -1)])
def test_options_out_of_range_are_refused(field: str, value: float) -> None:
    """An option that cannot be meant is refused when it is read."""
    with pytest.raises(ValueError, match=f"{field} must be a number from"):
        CoolDownOptions(**{field: value})  # type: ignore[arg-type]  # a wrong value is the point
