"""Learnt time-outs by example, with literal durations and chosen chance."""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import pytest

from agentgate.core.timeout import IDLE_S, TARGETS_MAX, TimeoutOptions, TimeoutPlan, Timeouts
from agentgate.model import Call


def middle() -> float:
    return 0.5


def always(*drawn: float) -> Callable[[], float]:
    """Chance that gives these numbers in turn, and 0.5 from then on."""
    left = list(drawn)
    return lambda: left.pop(0) if left else 0.5


def call(*, heavy: bool = False, declared_s: float | None = None, deadline: float = 1e9, **parts: Any) -> Call:
    return Call(
        **{
            "id": "c",
            "target": "b",
            "agent": "b",
            "task_type": "t",
            "heavy": heavy,
            "skill_timeout_s": declared_s,
            "deadline": deadline,
            **parts,
        }
    )


def timeouts(draw: Callable[[], float] = middle, *, fixed: bool = False, **options: Any) -> Timeouts:
    return Timeouts(TimeoutOptions(**options), draw, fixed=fixed)


def answer(policy: Timeouts, duration_s: float, times: int = 1, now: float = 0.0, **how: Any) -> None:
    for _ in range(times):
        policy.answered(policy.plan(call(**how), now), duration_s)


def cut(policy: Timeouts, times: int = 1, now: float = 100.0, **how: Any) -> list[TimeoutPlan]:
    plans = [policy.plan(call(**how), now) for _ in range(times)]
    for plan in plans:
        policy.cut(plan, plan.timeout_s)
    return plans


def timeout_s(policy: Timeouts, now: float = 100.0, **how: Any) -> float:
    return policy.plan(call(**how), now).timeout_s


def test_p95_times_the_safety_factor() -> None:
    """B8: 1.6 times the P95 of the last 100 answers; older answers do not count."""
    policy = timeouts()
    answer(policy, 20.0, 100)
    answer(policy, 5.0, 94)
    assert timeout_s(policy) == pytest.approx(30.0)
    answer(policy, 5.0, 6)
    answer(policy, 5.0, 1000)
    assert timeout_s(policy) == pytest.approx(8.0)


def test_nothing_is_concluded_from_few_samples() -> None:
    """F112, B7: after one fast answer, and up to the nineteenth, it is still 10 s."""
    policy = timeouts()
    for _ in range(19):
        answer(policy, 0.05)
        assert timeout_s(policy) == 10.0
        assert policy.p95_s("b", "t") is None
    answer(policy, 0.05)
    assert timeout_s(policy) < 2.3


def test_nothing_is_concluded_before_the_first_calls_had_their_time() -> None:
    """M: the first twenty answers of a busy agent are its twenty fastest."""
    policy = timeouts()
    answer(policy, 0.05, 20, now=50.0)
    assert timeout_s(policy, now=59.9) == 10.0
    assert timeout_s(policy, now=60.0) < 2.3


@pytest.mark.parametrize(
    ("seconds", "how", "expected"),
    [
        (0.0, {}, 2.15),
        (0.01, {}, 2.15),
        (4.0, {}, 6.4),
        (25.0, {}, 30.0),
        (25.0, {"heavy": True}, 40.0),
        (100.0, {"heavy": True}, 120.0),
        (25.0, {"declared_s": 60.0}, 40.0),
        (25.0, {"declared_s": 12.0}, 12.9),
        (0.01, {"declared_s": 1.0}, 1.075),
        (25.0, {"declared_s": 20.0, "heavy": True}, 21.5),
    ],
)
def test_limits(seconds: float, how: dict[str, Any], expected: float) -> None:
    """B8, D5: between 2 and 30 s, heavy work up to 120 s; a declared time, spread upward, is the limit for both."""
    policy = timeouts()
    answer(policy, seconds, 20, **how)
    assert timeout_s(policy, **how) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("how", "least", "most"),
    [
        ({}, 8.5, 11.5),
        ({"heavy": True}, 8.5, 11.5),
        ({"declared_s": 60.0}, 60.0, 69.0),
        ({"declared_s": 0.5}, 0.5, 0.575),
    ],
)
def test_before_anything_is_known(how: dict[str, Any], least: float, most: float) -> None:
    """B7, D5, F28: 10 s, spread by 15 % either way; what a skill declares is spread upward, and never less."""
    for drawn, expected in ((0.0, least), (1.0, most)):
        plan = timeouts(always(drawn)).plan(call(**how), 0.0)
        assert plan.timeout_s == pytest.approx(expected)
        assert not plan.explored


def test_each_kind_of_work_is_learnt_by_itself() -> None:
    """B2, B8: agents, task types and heavy work have windows of their own."""
    policy = timeouts()
    answer(policy, 5.0, 20)
    assert policy.p95_s("b", "t") is None
    assert timeout_s(policy) == 8.0
    assert policy.p95_s("b", "t") == 5.0
    assert timeout_s(policy, heavy=True) == 10.0
    assert timeout_s(policy, task_type="other") == 10.0
    assert timeout_s(policy, agent="other") == 10.0
    assert (policy.p95_s("b", "t", heavy=True), policy.p95_s("nobody", "t"), len(policy)) == (None, None, 4)


@pytest.mark.parametrize(("drawn", "expected"), [(0.0, 6.8), (0.5, 8.0), (0.999999, 9.2)])
def test_time_outs_are_spread(drawn: float, expected: float) -> None:
    """D5: 15 % either way, so that two sides do not come back in step."""
    policy = timeouts(always(*[0.5] * 40, drawn))
    answer(policy, 5.0, 20)
    assert timeout_s(policy) == pytest.approx(expected, abs=1e-4)


def test_quick_targets_are_spread_as_well() -> None:
    """D5: at the lower limit the spread goes upward, never below 2 s."""
    policy = timeouts(always(*[0.5] * 40, 0.0, 0.5, 0.999999, 0.5))
    answer(policy, 0.1, 20)
    assert [timeout_s(policy), timeout_s(policy)] == pytest.approx([2.0, 2.3], abs=1e-4)


def test_switched_off_it_is_fixed() -> None:
    """I2, DESIGN 8: off means 10 s (or what the skill declares), whatever was seen; nothing explores."""
    policy = timeouts(lambda: 0.0, fixed=True)
    answer(policy, 0.1, 200)
    assert (timeout_s(policy), timeout_s(policy, declared_s=60.0)) == (10.0, 60.0)
    assert not policy.plan(call(), 200.0).explored


def test_a_short_deadline_says_nothing_about_the_target() -> None:
    """Kind 4: an attempt cut before the target usually answers is no sample; `fair_s` says where that begins."""
    policy = timeouts()
    assert policy.plan(call(), 0.0).fair_s == 2.0
    assert policy.plan(call(declared_s=1.0), 0.0).fair_s == 1.0
    answer(policy, 5.0, 100)
    for _ in range(50):
        plan = policy.plan(call(), 100.0)
        assert plan.fair_s == 5.0
        policy.cut(plan, 4.9)
        policy.late(plan, 20.0)
    assert timeout_s(policy) == 8.0


def test_in_a_crowd_it_grows_by_proof_only() -> None:
    """DESIGN 4.3: with more than 5 % cut, slower answers raise it by a tenth at most, until a cut call is answered."""
    policy = timeouts()
    answer(policy, 5.0, 100)
    hung = cut(policy, 10)
    answer(policy, 7.0, 20, now=100.0)
    assert timeout_s(policy) == pytest.approx(8.8)
    policy.late(hung[0], 9.0)
    assert timeout_s(policy) == pytest.approx(7.0 * 1.6)


def test_hangs_do_not_move_it() -> None:
    """F114, M: with more than 5 % cut it does not grow, whatever their number; it stays above its lower limit."""
    policy = timeouts()
    answer(policy, 5.0, 100)
    for _ in range(100):
        cut(policy, 1)
        answer(policy, 5.0, 9, now=100.0)
        assert timeout_s(policy) == 8.0
    cut(policy, 500)
    assert timeout_s(policy) == 8.0


def test_one_time_out_and_then_successes() -> None:
    """F113: a success after a time-out never shortens it, and fifty good answers after an outage bring it back."""
    policy = timeouts()
    answer(policy, 5.0, 100)
    cut(policy)
    for _ in range(50):
        answer(policy, 5.0, now=100.0)
        assert timeout_s(policy) == 8.0
    cut(policy, 100)
    answer(policy, 5.0, 50, now=100.0)
    assert timeout_s(policy) == 8.0


def test_late_answers_are_learnt() -> None:
    """M: a write goes on after its time-out; when its answer comes, the next ones get the time it took."""
    policy = timeouts()
    answer(policy, 2.0, 100)
    for plan in cut(policy, 10):
        policy.late(plan, 6.0)
        policy.late(plan, 60.0)
    assert timeout_s(policy) == pytest.approx(9.6)


def test_one_call_in_seventy_explores() -> None:
    """M: it gets twice the time, if its deadline leaves room for a plain attempt after it."""
    policy = timeouts(always(*[0.5] * 40, 0.5, 0.014, 0.5, 0.015, 0.5, 0.014, 0.5, 0.014))
    answer(policy, 5.0, 10)
    answer(policy, 5.0, 10)
    explorer = policy.plan(call(), 100.0)
    assert (explorer.explored, explorer.timeout_s, explorer.plain_s) == (True, 16.0, 8.0)
    plain = policy.plan(call(), 100.0)
    assert (plain.explored, plain.timeout_s) == (False, 8.0)
    short = policy.plan(call(deadline=120.0), 100.0)
    assert (short.explored, short.timeout_s) == (True, 12.0)
    shorter = policy.plan(call(deadline=116.0), 100.0)
    assert (shorter.explored, shorter.timeout_s) == (False, 8.0)


def explorers(**options: Any) -> Timeouts:
    """Learnt at 2 s with a time-out of 3.2 s; from now on every call explores."""
    drawn = [0.5] * 200
    policy = timeouts(lambda: drawn.pop() if drawn else 0.0, spread=0.0, **options)
    answer(policy, 2.0, 100)
    drawn.clear()
    return policy


def test_an_explorer_that_is_cut_makes_the_next_one_reach_further() -> None:
    """M: twice, four times, eight times, up to the limit; after the crowd it begins anew."""
    policy = explorers()
    assert [plan.timeout_s for plan in cut(policy, 1)] == pytest.approx([6.4])
    assert [cut(policy, 1)[0].timeout_s for _ in range(5)] == pytest.approx([12.8, 25.6, 30.0, 30.0, 30.0])
    answer(policy, 2.0, 100, now=100.0)
    assert timeout_s(policy) == pytest.approx(6.4)


def test_an_explorer_that_is_answered_speaks_for_those_that_were_cut() -> None:
    """M, F114: reads are cancelled at their time-out, so only an explorer can show that they were honest work."""
    policy = explorers()
    plain = [policy.plan(call(), 100.0) for _ in range(50)]
    for plan in plain:
        plan.explored = False
        policy.cut(plan, plan.plain_s)
    answer(policy, 6.0, now=100.0)
    assert policy.p95_s("b", "t") == 6.0


def test_an_explorer_speaks_for_its_share_only() -> None:
    """M: where most explorers hang for the whole time, one that is answered changes little."""
    policy = explorers()
    for _ in range(10):
        cut(policy, 1)
    policy.answered(policy.plan(call(), 100.0), 6.0)
    assert policy.p95_s("b", "t") == 2.0


def test_old_verdicts_of_explorers_fade() -> None:
    """F113: however many explorers hung, some that are answered change the judgement."""
    policy = explorers()
    for _ in range(200):
        cut(policy, 1)
    for _ in range(8):
        policy.answered(policy.plan(call(), 100.0), 6.0)
    answer(policy, 6.0, 20, now=100.0)
    assert policy.p95_s("b", "t") == 6.0


def test_five_cuts_in_a_row_make_the_time_out_suspect() -> None:
    """F113: of the few calls that pass an open breaker every fourth explores, or a slow target could never show it."""
    policy = timeouts(lambda: 0.2)
    assert not policy.plan(call(), 0.0).explored
    cut(policy, 5)
    assert policy.plan(call(), 0.0).explored
    answer(policy, 1.0)
    assert not policy.plan(call(), 0.0).explored


def test_zero_means_zero() -> None:
    """F48: no exploring, no spread, no censored share."""
    policy = timeouts(lambda: 0.0, explore_share=0.0, spread=0.0, censored_share_max=0.0)
    answer(policy, 5.0, 100)
    cut(policy, 10)
    plan = policy.plan(call(), 100.0)
    assert (plan.explored, plan.timeout_s) == (False, 8.0)


def test_targets_are_forgotten() -> None:
    """F110: the map is bounded, and what nobody called for two days goes when another comes."""
    policy = timeouts()
    for number in range(TARGETS_MAX + 5):
        policy.plan(call(task_type=f"t{number}"), 0.0)
    assert len(policy) == TARGETS_MAX
    policy.plan(call(task_type="u"), IDLE_S)
    policy.plan(call(task_type="v"), 2 * IDLE_S)
    assert len(policy) == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("safety_factor", 0.9), ("min_s", 0.0), ("max_s", nan), ("heavy_max_s", 4000.0), ("default_s", -1.0)),
        *(("window", 19), ("samples_min", 0), ("spread", 0.6), ("censored_share_max", 0.6), ("explore_share", -0.1)),
    ],
)
def test_options_out_of_range_are_refused(field: str, value: float) -> None:
    """A time-out that cannot be meant is refused when it is read."""
    with pytest.raises(ValueError, match=f"{field} must be a number from"):
        TimeoutOptions(**{field: value})  # type: ignore[arg-type]  # a wrong value is the point


def test_options_that_contradict_each_other_are_refused() -> None:
    """I7: a lower limit above the upper, or more samples than the window holds: refused, and both sides are named."""
    with pytest.raises(ValueError, match=r"min_s must be at most max_s \(30\), not 31"):
        TimeoutOptions(min_s=31.0)
    with pytest.raises(ValueError, match=r"samples_min must be at most window \(50\), not 60"):
        TimeoutOptions(window=50, samples_min=60)


@pytest.mark.parametrize(
    ("options", "first_s", "heavy_s"),
    [({"max_s": 5.0}, 5.0, 10.0), ({"min_s": 15.0}, 16.125, 16.125), ({"max_s": 300.0}, 10.0, 10.0)],
)
def test_the_default_stays_between_the_limits(options: dict[str, Any], first_s: float, heavy_s: float) -> None:
    """I3: setting one limit is enough; the time before anything is known follows it, spread upward from the lower."""
    policy = timeouts(**options)
    assert (timeout_s(policy), timeout_s(policy, heavy=True)) == (first_s, heavy_s)


def test_heavy_work_gets_no_less_than_the_rest() -> None:
    """B8: where the ordinary limit is above the one for heavy work, it holds for both."""
    policy = timeouts(max_s=300.0)
    answer(policy, 1000.0, 20, heavy=True)
    assert timeout_s(policy, heavy=True) == 300.0
