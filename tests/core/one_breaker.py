"""A breaker to try things on, without a spread, so that its times are whole numbers."""

from __future__ import annotations

from collections.abc import Callable

from agentgate.core.breaker import Breaker, BreakerOptions, Result, State

EXACT = BreakerOptions(open_spread=0.0)


def middle() -> float:
    return 0.5


def breaker_of(options: BreakerOptions = EXACT, draw: Callable[[], float] = middle) -> Breaker:
    return Breaker(options, draw, 0.0)


def state_of(breaker: Breaker) -> State:
    """Read anew each time: the type checker would remember the first answer."""
    return breaker.state


def feed(breaker: Breaker, results: str, now: float = 1.0) -> None:
    """Let calls in and out at once: `o`k, `f`ault, `r`ejected, `n`eutral."""
    names: dict[str, Result] = {"o": "ok", "f": "fault", "r": "rejected", "n": "neutral"}
    for letter in results:
        breaker.leave(breaker.enter(now), names[letter], now)


def opened_at(now: float, options: BreakerOptions = EXACT, draw: Callable[[], float] = middle) -> Breaker:
    breaker = breaker_of(options, draw)
    feed(breaker, "fffff", now)
    assert state_of(breaker) == "open"
    return breaker


def half_open(options: BreakerOptions = EXACT) -> Breaker:
    """Half-open since 10.0."""
    breaker = opened_at(0.0, options)
    assert breaker.refusal(10.0) is None
    assert state_of(breaker) == "half_open"
    return breaker
