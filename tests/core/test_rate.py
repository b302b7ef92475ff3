"""The pacing token bucket by example, with literal times."""

from __future__ import annotations

from math import nan

import pytest

from agentgate.core.policy import Admit, Park, Refuse, Ticket, Wake
from agentgate.core.rate import SENDERS_MAX, RateLimiter, RateOptions
from agentgate.model import Call, Outcome

TEN = RateOptions(rate_per_s=10.0, burst=2, parked_max=3)


def call(caller: str = "shop", *, deadline: float = 1000.0, tenant: str = "default") -> Call:
    return Call(id="c", target="b", task_type="t", caller=caller, tenant=tenant, deadline=deadline)


def parked(policy: RateLimiter, now: float, *, deadline: float = 1000.0) -> Park:
    decision = policy.admit(call(deadline=deadline), now)
    assert isinstance(decision, Park)
    return decision


def admitted(policy: RateLimiter, now: float, caller: str = "shop") -> Ticket:
    decision = policy.admit(call(caller), now)
    assert isinstance(decision, Admit)
    return decision.ticket


def refused_ms(policy: RateLimiter, now: float, *, deadline: float = 1000.0) -> int:
    asked = policy.ask(call(deadline=deadline), now)
    decision = policy.admit(call(deadline=deadline), now)
    assert isinstance(decision, Refuse)
    assert decision.error == asked
    assert (decision.error.code, decision.error.fault, decision.error.retry) == ("rate_limited", "refused", "after")
    assert decision.error.retry_after_ms is not None
    return decision.error.retry_after_ms


def test_the_default_is_two_hundred_a_second() -> None:
    """B1: a second's worth passes at once, then one call every 5 ms; the rest waits, up to a hundred."""
    policy = RateLimiter(RateOptions())
    decisions = [policy.admit(call(), 50.0) for _ in range(301)]
    assert [type(decision) for decision in decisions] == [Admit] * 200 + [Park] * 100 + [Refuse]
    assert [round(decision.until, 6) for decision in decisions[200:203] if isinstance(decision, Park)] == [
        50.005,
        50.01,
        50.015,
    ]
    assert len(policy.tick(51.0)) == 100


def test_calls_above_the_rate_wait_for_their_turn() -> None:
    """B1: it paces; each parked call passes at its own time, first come, first served."""
    policy = RateLimiter(TEN)
    admitted(policy, 0.0)
    admitted(policy, 0.0)
    first, second = parked(policy, 0.0), parked(policy, 0.05)
    assert [first.until, second.until] == pytest.approx([0.1, 0.2])
    assert policy.next_deadline() == first.until
    assert policy.tick(0.09) == []
    assert policy.tick(first.until) == [Wake(first.ticket, Admit(first.ticket))]
    assert policy.next_deadline() == pytest.approx(second.until)
    assert policy.tick(second.until) == [Wake(second.ticket, Admit(second.ticket))]
    assert (policy.next_deadline(), policy.tick(9.0)) == (None, [])


def test_rest_earns_a_burst_and_no_more() -> None:
    """B1: after any rest exactly `burst` calls pass at once."""
    policy = RateLimiter(TEN)
    for now in (0.0, 100.0, 900.0):
        admitted(policy, now)
        admitted(policy, now)
        policy.abandon(parked(policy, now).ticket, now)
    admitted(policy, 900.1)
    parked(policy, 900.1)


def test_a_turn_beyond_the_deadline_is_refused() -> None:
    """DESIGN 4.3: a call whose turn does not come before its deadline hears so at once, and when it would."""
    policy = RateLimiter(TEN)
    admitted(policy, 0.0)
    admitted(policy, 0.0)
    assert refused_ms(policy, 0.0, deadline=0.1) == 100
    assert policy.ask(call(deadline=0.2), 0.0) is None
    parked(policy, 0.0, deadline=0.2)
    assert refused_ms(policy, 0.0, deadline=0.15) == 200


def test_a_full_waiting_room_refuses() -> None:
    """B1: at most `parked_max` calls of a sender wait, and the next is told when there will be a turn."""
    policy = RateLimiter(TEN)
    for _ in range(5):
        policy.admit(call(), 0.0)
    assert refused_ms(policy, 0.0) == 400
    assert len(policy.tick(0.2)) == 2
    parked(policy, 0.2)


def test_nobody_overtakes_those_who_wait() -> None:
    """First come, first served also when a turn has come and `tick` has not been called yet."""
    policy = RateLimiter(TEN)
    admitted(policy, 0.0)
    admitted(policy, 0.0)
    first = parked(policy, 0.0)
    late = parked(policy, 5.0)
    assert late.until == 5.0
    assert [wake.ticket for wake in policy.tick(5.0)] == [first.ticket, late.ticket]


def test_a_call_that_leaves_gives_its_turn_to_the_next() -> None:
    """Kind 10: those behind an abandoned ticket move up one place; who has passed gives nothing back."""
    policy = RateLimiter(TEN)
    gone = admitted(policy, 0.0)
    admitted(policy, 0.0)
    policy.settle(gone, Outcome(), 0.0)
    first, second, third = (parked(policy, 0.0) for _ in range(3))
    policy.abandon(first.ticket, 0.05)
    policy.abandon(gone, 0.05)
    assert [wake.ticket for wake in policy.tick(0.1)] == [second.ticket]
    assert [wake.ticket for wake in policy.tick(0.2)] == [third.ticket]


def test_a_waiting_room_that_empties_wakes_nobody() -> None:
    """When all parked calls have left, there is nothing to wake for, and the next call stands at the front again."""
    policy = RateLimiter(TEN)
    admitted(policy, 0.0)
    admitted(policy, 0.0)
    policy.abandon(parked(policy, 0.0).ticket, 0.0)
    again = parked(policy, 0.01)
    policy.abandon(again.ticket, 0.02)
    assert policy.next_deadline() is None
    policy.abandon(parked(policy, 0.03).ticket, 0.04)
    assert policy.tick(0.1) == []
    admitted(policy, 0.1)


def test_senders_do_not_share() -> None:
    """B1: the rate is per tenant and caller."""
    policy = RateLimiter(RateOptions(burst=1))
    admitted(policy, 0.0)
    admitted(policy, 0.0, "other")
    assert isinstance(policy.admit(call(tenant="t2"), 0.0), Admit)
    assert isinstance(policy.admit(call(), 0.0), Park)
    assert policy.ask(call("third"), 0.0) is None


def test_zero_means_zero() -> None:
    """F48: a waiting room of 0 lets nobody wait."""
    policy = RateLimiter(RateOptions(rate_per_s=1.0, burst=1, parked_max=0))
    admitted(policy, 0.0)
    assert refused_ms(policy, 0.0) == 1000
    admitted(policy, 1.0)


def test_observing_counts_up_to_the_limit() -> None:
    """I2: shadow calls always pass, say what enforcing would have done, and leave no debt beyond the limit."""
    policy = RateLimiter(TEN)
    woulds = [policy.shadow(call(deadline=0.05), 0.0).would for _ in range(3)]
    assert woulds == ["", "", "would_rate_limit"]
    assert policy.shadow(call(), 0.0).would == "would_pace"
    for _ in range(100):
        policy.shadow(call(), 0.0)
    assert policy.next_deadline() is None
    admitted(policy, 0.1)


def test_senders_are_forgotten() -> None:
    """F110: the map is bounded and swept; calls parked for a sender that had to go are still woken."""
    policy = RateLimiter(RateOptions(rate_per_s=1.0, burst=1))
    policy.tick(0.0)
    for number in range(SENDERS_MAX + 1):
        admitted(policy, 0.0, f"sender-{number}")
        assert isinstance(policy.admit(call(f"sender-{number}"), 0.0), Park)
    assert len(policy) == SENDERS_MAX
    assert len(policy.tick(1.0)) == SENDERS_MAX + 1
    policy.tick(4_000.0)
    policy.tick(8_000.0)
    assert len(policy) == 0


@pytest.mark.parametrize(
    ("field", "value"), [("rate_per_s", 0.0), ("rate_per_s", nan), ("burst", 0), ("parked_max", -1)]
)
def test_options_out_of_range_are_refused(field: str, value: float) -> None:
    """F106: a rate that lets nothing pass, or an arithmetic trick, is refused when it is read."""
    with pytest.raises(ValueError, match=f"{field} must be a number from"):
        RateOptions(**{field: value})  # type: ignore[arg-type]  # a wrong value is the point


def test_what_is_left_of_a_rate_is_what_would_pass_at_once() -> None:
    """B1: a stranger has the whole burst, whoever has sent has less, and nobody more than the burst, however long it
    rests; asking leaves no trace.
    """
    policy = RateLimiter(TEN)
    assert policy.left("default", "shop", 0.0) == 2
    assert len(policy) == 0
    found = [policy.left("default", "shop", 0.0)]
    for _ in range(2):
        admitted(policy, 0.0)
        found.append(policy.left("default", "shop", 0.0))
    assert found == [2, 1, 0]
    assert [policy.left("default", "shop", now) for now in (0.05, 0.1, 0.15, 0.2, 100.0)] == [0, 1, 1, 2, 2]
    parked(policy, 0.0)
    assert policy.left("default", "shop", 0.1) == 0
