"""Half-open: who may try, how many, for how long, and what trials decide."""

from __future__ import annotations

import pytest

from agentgate.core.breaker import BreakerOptions, Pass, State
from tests.core.one_breaker import breaker_of, feed, half_open, state_of


def test_half_open_admits_five_at_a_time() -> None:
    """B3: of 100 callers at the moment of half-opening five pass, the others are told when to ask (FAILURES F37)."""
    breaker = half_open()
    passes: list[Pass] = []
    refused: list[float] = []
    for _ in range(100):
        wait_s = breaker.refusal(10.0)
        if wait_s is None:
            passes.append(breaker.enter(10.0))
        else:
            refused.append(wait_s)
    assert (len(passes), len(refused), set(refused)) == (5, 95, {30.0})
    breaker.leave(passes[0], "neutral", 11.0)
    assert breaker.refusal(11.0) is None  # the permit is back


@pytest.mark.parametrize(
    ("results", "state", "openings"),
    [
        ("ooo", "closed", 1),
        ("oo", "half_open", 1),
        ("onoo", "closed", 1),
        ("f", "open", 2),
        ("oof", "open", 2),
        ("nnnnnnnnnn", "half_open", 1),
        ("oorooo", "closed", 1),
    ],
)
def test_trials_decide(results: str, state: State, openings: int) -> None:
    """B3: three good trials in a row close it, one bad one opens it at once (FAILURES F35)."""
    breaker = half_open()
    feed(breaker, results, 10.0)
    assert (state_of(breaker), breaker.openings) == (state, openings)


def test_it_closes_with_an_empty_window() -> None:
    """B3: after recovery the past is forgotten: neither the old ratio nor the old run counts."""
    breaker = half_open()
    feed(breaker, "ooo", 10.0)
    feed(breaker, "ffff", 10.0)
    assert state_of(breaker) == "closed"
    assert breaker.window.totals == [0, 4, 0, 0]


def test_a_counted_rejection_breaks_the_row_of_good_trials() -> None:
    """Where rejections count, they neither reopen it nor help to close it."""
    breaker = half_open(BreakerOptions(open_spread=0.0, rejected_ratio=0.5))
    feed(breaker, "oor", 10.0)
    feed(breaker, "oo", 10.0)
    assert state_of(breaker) == "half_open"
    feed(breaker, "o", 10.0)
    assert state_of(breaker) == "closed"


def test_a_slow_trial_is_a_bad_one() -> None:
    """A breaker that opened for slowness does not close because the answers were good, but late."""
    breaker = half_open(BreakerOptions(open_spread=0.0, slow_call_s=2.0))
    trial = breaker.enter(10.0)
    breaker.leave(trial, "ok", 12.0)
    assert state_of(breaker) == "open"


def test_a_closed_breaker_refuses_nobody() -> None:
    """While closed, heavy and light calls pass alike."""
    assert breaker_of().refusal(0.0, light=False) is None


def test_light_calls_go_first() -> None:
    """B3: for 10 s only light calls are tried, then any."""
    breaker = half_open()
    assert breaker.refusal(12.0, light=False) == pytest.approx(8.0)
    assert breaker.refusal(12.0, light=True) is None
    assert breaker.refusal(20.0, light=False) is None


@pytest.mark.parametrize(
    ("heavy", "limit_s", "expires_at"), [(False, 0.0, 40.0), (True, 0.0, 130.0), (False, 50.0, 60.0)]
)
def test_a_trial_that_never_leaves_is_a_fault(heavy: bool, limit_s: float, expires_at: float) -> None:
    """A lost trial reopens it at its time limit, and its late answer changes nothing (FAILURES F33)."""
    breaker = half_open()
    lost = breaker.enter(10.0, heavy=heavy, limit_s=limit_s)
    assert breaker.next_expiry() == expires_at
    breaker.advance(expires_at - 0.1)
    assert state_of(breaker) == "half_open"
    assert breaker.refusal(expires_at) == pytest.approx(20.0)
    breaker.leave(lost, "ok", expires_at + 1.0)
    assert (state_of(breaker), breaker.reopens_at) == ("open", expires_at + 20.0)


def test_time_counts_from_when_it_was_due() -> None:
    """Looked at only after an hour, it is where it would be had somebody looked all the time."""
    breaker = half_open()
    breaker.enter(10.0)
    breaker.advance(3600.0)
    assert (state_of(breaker), breaker.since, breaker.openings) == ("half_open", 60.0, 2)
