"""Who repeats what was final, by example, with literal times."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.abuse import CALLERS_MAX, MAY_BE_REPEATED, REQUESTS_MAX, Abuse, AbuseOptions, Hold
from agentgate.errors import CODES
from agentgate.model import Call, Outcome, failure

NO = failure("rejected", sent=True)
OPEN = failure("breaker_open")
STORED = Outcome(error=NO.error, replayed=True)


def call(at: float, key: str = "o1", **more: Any) -> Call:
    return Call(
        **{
            "id": "c",
            "target": "bank",
            "task_type": "pay",
            "business_key": key,
            "caller": "shop",
            "received_at": at,
            **more,
        }
    )


def read(at: float, payload: Any = None) -> Call:
    return call(at, "", effect="read", payload=payload)


def loop(abuse: Abuse, times: int, every_s: float, outcome: Outcome = OPEN, begin: float = 0.0) -> list[Hold | None]:
    """What a caller gets that asks again and again, and is never let down by being held back."""
    return [
        abuse.answered(call(begin + number * every_s), outcome, begin + number * every_s + 0.01)
        for number in range(times)
    ]


def held(abuse: Abuse, now: float, **more: Any) -> int | None:
    refused = abuse.refusal(call(now, **more), now)
    return None if refused is None else refused.retry_after_ms


def test_a_loop_is_held_back() -> None:
    """B6: a caller that asks every three seconds for what is final is held back within half a minute."""
    abuse = Abuse(AbuseOptions())
    found = loop(abuse, 7, 3.0)
    first = next(number for number, hold in enumerate(found) if hold is not None)
    assert first == 6
    assert found[first] == Hold(5.0, 6, "breaker_open")
    assert abuse.any_held
    refused = abuse.refusal(call(19.0), 19.0)
    assert refused is not None
    assert (refused.code, refused.fault, refused.retry, refused.retry_after_ms) == (
        "abnormal_usage",
        "refused",
        "after",
        4010,
    )
    assert "shop went on repeating calls to bank that were answered 'breaker_open'" in refused.detail
    assert held(abuse, 19.0, target="mint") is None
    assert held(abuse, 19.0, caller="desk") is None
    assert held(abuse, 19.0, tenant="other") is None
    assert held(abuse, 23.02) is None


def test_going_on_is_held_back_for_longer() -> None:
    """B6: each hold that is followed by more of the same is twice as long, up to the limit; peace takes it back."""
    abuse = Abuse(AbuseOptions())
    now, times = 0.0, []
    for _ in range(200):
        now += 1.0
        hold = abuse.answered(call(now), OPEN, now + 0.01)
        if hold is not None:
            times.append(hold.hold_s)
            now += hold.hold_s
    assert times[:7] == [5, 10, 20, 40, 80, 160, 300]
    assert set(times[7:]) == {300}
    now += 300 * 20
    again = [hold for hold in loop(abuse, 20, 1.0, begin=now) if hold is not None]
    assert again[0].hold_s == 5


def test_different_requests_are_no_repeats() -> None:
    """B6: a thousand orders that are refused once each are the target's affair, and so are different reads."""
    abuse = Abuse(AbuseOptions())
    for number in range(1000):
        now = number / 100
        assert abuse.answered(call(now, f"o{number}"), NO, now) is None
        assert abuse.answered(call(now, action=f"a{number}"), NO, now) is None
        assert abuse.answered(read(now, number), NO, now) is None
    assert not abuse.any_held


def test_a_read_is_repeated_by_its_body() -> None:
    """B6: a read has no key; the same question again is a repeat."""
    abuse = Abuse(AbuseOptions())
    holds = [abuse.answered(read(float(now), {"a": 1, "b": 2}), failure("bad_request"), now + 0.1) for now in range(8)]
    assert any(holds)


def test_who_comes_back_now_and_then_is_forgiven() -> None:
    """B6: a job that tries every twenty seconds is never held back, however long it does."""
    abuse = Abuse(AbuseOptions())
    assert not any(loop(abuse, 500, 20.0))
    assert not any(loop(Abuse(AbuseOptions()), 6, 1.0))


def test_calls_under_way_together_are_no_repeats() -> None:
    """A fan-out of the same call, made before anybody was answered, is one mistake, not many."""
    abuse = Abuse(AbuseOptions())
    assert not any(abuse.answered(call(0.0), OPEN, 1.0) for _ in range(100))
    abuse = Abuse(AbuseOptions())
    loop(abuse, 10, 1.0)
    assert abuse.answered(call(5.9), OPEN, 6.05) is None


def test_an_answer_from_the_ledger_counts_little() -> None:
    """B6: a replay costs next to nothing; whoever asks twice a second for a stored answer is not held back at once."""
    assert not any(loop(Abuse(AbuseOptions()), 40, 1.0, STORED))
    tight = loop(Abuse(AbuseOptions()), 100, 0.1, STORED)
    assert next(number for number, hold in enumerate(tight) if hold is not None) > 50


@pytest.mark.parametrize("code", [code for code, info in CODES.items() if info.retry == "after"])
def test_what_may_be_tried_later_does_not_count(code: str) -> None:
    """B6: only `retry: never` is final."""
    assert not any(loop(Abuse(AbuseOptions()), 50, 0.1, failure(code)))


@pytest.mark.parametrize("code", sorted(MAY_BE_REPEATED))
def test_what_the_advice_sends_back_does_not_count(code: str) -> None:
    """C4: the same key may be asked again for its answer, an outcome nobody knows may become known."""
    assert CODES[code].retry == "never"
    assert not any(loop(Abuse(AbuseOptions()), 50, 0.1, failure(code, sent=True)))


def test_a_read_that_timed_out_is_no_key_to_come_back_for() -> None:
    """B6: repeating a read at its deadline is a retry loop of the caller's own."""
    abuse = Abuse(AbuseOptions())
    late = failure("deadline_exceeded", sent=True)
    assert any(abuse.answered(read(float(now)), late, now + 0.1) for now in range(8))


def test_success_and_again_do_not_count() -> None:
    """B6: an answer is no offence, and `again` is somebody who knows what was stored."""
    abuse = Abuse(AbuseOptions())
    assert not any(loop(abuse, 50, 0.1, Outcome(value=1)))
    assert len(abuse) == 0
    assert not any(abuse.answered(call(float(now), again=True), NO, now + 0.1) for now in range(50))


def test_what_is_remembered_is_bounded() -> None:
    """F110: names from outside fill no map, and what was long ago is forgotten."""
    abuse = Abuse(AbuseOptions(repeats_max=1))
    for number in range(REQUESTS_MAX + 10):
        for now in (0.0, 1.0):
            abuse.answered(call(now, caller=f"caller-{number}"), NO, now + 0.5)
    assert len(abuse) == REQUESTS_MAX + CALLERS_MAX
    for now in (10_000.0, 20_000.0, 30_000.0):
        abuse.answered(call(now, f"o{now}"), NO, now)
    assert len(abuse) < 10
    assert not abuse.any_held


@pytest.mark.parametrize(
    "options",
    [{"repeats_max": 0}, {"forgive_s": 0.0}, {"hold_s": 0.0}, {"hold_s": 10.0, "hold_max_s": 5.0}],
)
def test_options_out_of_range_are_refused(options: dict[str, Any]) -> None:
    """F106: a limit of nothing would hold back everybody."""
    with pytest.raises(ValueError, match="must"):
        AbuseOptions(**options)
