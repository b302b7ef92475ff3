"""What is proposed from the past, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.backoff import BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.core.rate import RateOptions
from agentgate.core.suggest import NOTES, nice
from agentgate.core.timeout import TimeoutOptions
from agentgate.model import Span
from tests.core.span_kit import attempt, call, proposed, silent, suggested


def test_too_few_data_propose_nothing_and_say_so() -> None:
    """I2: with nothing, and with little, every subject says how much is missing."""
    for spans in ([], [call(), attempt()]):
        found = suggested(*spans, modes={"circuit_breaker": "observe"})
        assert found.proposals == []
        assert set(silent(found)) == {
            "mechanisms.circuit_breaker",
            "dynamic_timeout",
            "circuit_breaker.error_ratio",
            "rate_limit.per_second",
            "retry.max_attempts",
        }
        assert "200 are needed" in silent(found)["mechanisms.circuit_breaker"]


# --- observe -> enforce


def test_enforcing_is_proposed_with_what_it_would_have_done() -> None:
    """I2: the count of what would have been refused, of all calls, in how much time."""
    spans = [
        call(n, at=n * 8.64, notes=("would_open",) * (n < 12), status="failed" if n < 12 else "done")
        for n in range(10_000)
    ]
    found = suggested(*spans, modes={"circuit_breaker": "observe"})
    [proposal] = [one for one in found.proposals if one.key == "mechanisms.circuit_breaker"]
    assert (proposal.current, proposal.proposed) == ("observe", "enforce")
    assert proposal.reason == (
        "in 24 h it would have refused 12 of 10 000 calls, and 0 of those that it would have failed ended well"
    )
    assert proposal.figures == {"calls": 10_000, "would_open": 12}


def test_enforcing_what_would_harm_is_not_proposed() -> None:
    """I2: more than one call in a hundred would have been failed and ended well: observe further."""
    spans = [call(n, at=n * 10.0, notes=("would_cut",) * (n < 11)) for n in range(1000)]
    found = suggested(*spans, modes={"dynamic_timeout": "observe"})
    assert "mechanisms.dynamic_timeout" not in proposed(found)
    why = silent(found)["mechanisms.dynamic_timeout"]
    assert why.startswith("observe it further: in 3 h it would have cut 11 of 1 000 calls, and 11 of")


def test_what_a_mechanism_is_for_is_no_harm() -> None:
    """I2: repeats answered from the ledger, waits and further attempts are reasons for, not against; nor is nothing."""
    notes = ("would_replay", "would_join", "would_pace", "would_retry", "would_queue")
    modes = dict.fromkeys(("idempotency", "rate_limit", "retry", "concurrency", "cool_down"), "observe")
    found = suggested(*(call(n, at=n * 15.0, notes=notes) for n in range(300)), modes=modes)  # type: ignore[arg-type]  # all "observe"
    assert {key for key, value in proposed(found).items() if value == "enforce"} == {
        f"mechanisms.{name}" for name in modes
    }
    reasons = {one.key: one.reason for one in found.proposals}
    assert reasons["mechanisms.cool_down"] == "in 75 min it would have touched none of 300 calls"
    assert "answered 300 from the ledger and answered 300 with the run" in reasons["mechanisms.idempotency"]
    short = suggested(*(call(n, at=n / 4) for n in range(300)), modes={"retry": "observe"})
    assert silent(short)["mechanisms.retry"] == "only 75 s were recorded, 60 min are needed"
    assert "retry.max_attempts" not in {*proposed(found), *silent(found)}


def test_every_note_has_words() -> None:
    """I2: each says what would have been done to how many."""
    assert all(would.did.count("{}") == 1 for would in NOTES.values())


# --- time-outs


def answers(*took_ms: float, **fields: Any) -> list[Span]:
    return [attempt(n, ms, at=n * 10.0, **fields) for n, ms in enumerate(took_ms)]


def timeouts(*spans: Span, **options: float) -> dict[str, float | str]:
    found = proposed(suggested(*spans, timeout=TimeoutOptions(**options)))  # type: ignore[arg-type]  # numbers of either kind
    return {key.partition(".")[2]: value for key, value in found.items() if key.startswith("dynamic_timeout")}


def test_fast_targets_need_no_long_time_outs() -> None:
    """B8: where the slowest hundredth takes 100 ms, half a second at least and two at most is room enough."""
    assert timeouts(*answers(*[100.0] * 300)) == {"max_ms": 2000, "min_ms": 500}
    assert timeouts(*answers(*[0.0] * 300)) == {"max_ms": 2000, "min_ms": 500}


def test_slow_targets_get_room_up_to_the_deadline() -> None:
    """B8: slow honest work that the longest time-out cuts is a reason to raise it, never above the deadline."""
    assert timeouts(*answers(*[5000.0] * 300), max_s=6.0) == {"max_ms": 8000}
    assert timeouts(*answers(*[25_000.0] * 300), max_s=26.0) == {"max_ms": 30_000}
    assert timeouts(*answers(*[25_000.0] * 300)) == {}


def test_what_fits_is_left_alone() -> None:
    """I2: a threshold that fits is not proposed anew."""
    assert timeouts(*answers(*[6000.0] * 300)) == {}


def test_a_wide_spread_asks_for_a_larger_factor() -> None:
    """B8: when one in a hundred answers takes more than the factor above the P95, it is cut though it is honest."""
    wide = [2000.0] * 290 + [5000.0] * 10
    assert timeouts(*answers(*wide)) == {"safety_factor": 2.8}
    assert timeouts(*answers(*wide), safety_factor=3.0) == {}
    assert timeouts(*answers(*[20.0] * 290, *[50.0] * 10), max_s=3.0) == {"min_ms": 500}


@pytest.mark.parametrize(
    "spans",
    [
        answers(*[100.0] * 199),
        answers(*[100.0] * 300, timeout_ms=120_000.0),
        [
            *answers(*[100.0] * 300),
            *(attempt(n, code="deadline_exceeded", fault="unreachable", sent=True) for n in range(20)),
        ],
    ],
    ids=["few answers", "a time of its own", "hung"],
)
def test_what_cannot_tell_says_nothing(spans: list[Span]) -> None:
    """B8: few answers, heavy or declared work, and targets that hung are no measure."""
    assert timeouts(*spans) == {}


# --- the others


def windows(*shares: float, **options: float) -> dict[str, float | str]:
    """Ten outcomes in every window, so many of them faults."""
    fault: dict[str, Any] = {"code": "handler_error", "fault": "handler_error"}
    spans = [
        attempt(place * 100 + n, at=place * 60.0 + n, **(fault if n < share * 10 else {}))
        for place, share in enumerate(shares)
        for n in range(10)
    ]
    found = proposed(suggested(*spans, breaker=BreakerOptions(**options)))  # type: ignore[arg-type]  # numbers of either kind
    return {key: value for key, value in found.items() if key.startswith("circuit_breaker")}


def test_the_breaker_opens_above_what_is_ordinary() -> None:
    """B2: a ratio below the ordinary share of faults is too low; one far above the worst may come closer."""
    key = "circuit_breaker.error_ratio"
    assert windows(*[0.4] * 30) == {key: 0.6}
    assert windows(*[1.0] * 30) == {key: 0.9}
    assert windows(*[0.0] * 30) == {key: 0.1}
    assert windows(*[0.1] * 30) == {}
    assert windows(*[0.1] * 30, error_ratio=0.6) == {key: 0.2}
    assert windows(*[0.4] * 19) == {}


def rates(spans: list[Span], **options: float) -> dict[str, float | str]:
    found = proposed(suggested(*spans, rate=RateOptions(**options)))  # type: ignore[arg-type]  # numbers of either kind
    return {key.partition(".")[2]: value for key, value in found.items() if key.startswith("rate_limit")}


def test_the_rate_has_room_above_the_busiest_sender() -> None:
    """B1: three times the busiest ten seconds; a limit that cuts into ordinary peaks, or is far above, is proposed."""
    steady = [call(n, at=n / 20) for n in range(400)]
    assert rates(steady) == {}
    assert rates(steady, rate_per_s=20) == {"per_second": 60, "burst": 60}
    assert rates(steady, rate_per_s=1000, burst=60) == {"per_second": 60}
    seldom = [call(n, at=n * 10.0) for n in range(400)]
    assert rates(seldom) == {"per_second": 10, "burst": 50}


def tries(ended_well: int, came: int, **options: int) -> dict[str, float | str]:
    spans = [call(n, at=n * 100.0, attempts=3, status="done" if n < ended_well else "failed") for n in range(came)]
    found = proposed(suggested(*spans, retry=BackoffOptions(**options)))
    return {key: value for key, value in found.items() if key.startswith("retry")}


def test_attempts_are_made_while_they_help() -> None:
    """B5: a last attempt that never helps only adds load; one that helps half the time says that another may."""
    key = "retry.max_attempts"
    assert tries(2, 100) == {key: 2}
    assert tries(60, 100) == {key: 4}
    assert tries(20, 100) == {}
    assert tries(60, 49) == {}
    assert tries(60, 100, attempts_max=1) == {}
    assert tries(60, 100, attempts_max=5) == {}


def test_agents_that_make_calls_wait_are_named() -> None:
    """B11: what belongs on a card is proposed for the agent, and not for the file."""
    waiting = [attempt(n, 1000, at=n / 2, queue_ms=400.0 if n % 4 == 0 else 0.0) for n in range(400)]
    [proposal] = [one for one in suggested(*waiting).proposals if not one.in_file]
    assert "card of bank" in proposal.key
    assert (proposal.proposed, proposal.figures["wait_p95_ms"], proposal.reason[:3]) == (6, 400, "25%")
    noted = [call(n, at=n / 2, notes=("would_queue",)) for n in range(100)]
    free = [attempt(n, 1000, at=n / 2) for n in range(400)]
    [proposal] = [
        one for one in suggested(*free, *noted, modes={"concurrency": "observe"}).proposals if not one.in_file
    ]
    assert (proposal.proposed, proposal.reason[:9]) == (2, "100 calls")
    assert all(one.in_file for one in suggested(*free, *noted).proposals)
    assert all(one.in_file for one in suggested(*waiting[:100]).proposals)


def test_round_numbers_are_at_least_what_they_round() -> None:
    """What is proposed is easy to read, and never below what was asked for."""
    assert [nice(value) for value in (0.0, 0.011, 1.0, 1.2, 7.0, 160.0, 2000.1, 9.9)] == [
        0,
        0.015,
        1,
        1.5,
        8,
        200,
        2500,
        10,
    ]
