"""Learnt time-outs in front of targets that hang, slow down, and do heavy work that nobody declared."""

from __future__ import annotations

from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.timeout import TimeoutOptions, Timeouts
from agentgate.model import Call, Effect
from tests.properties.scripted_target import (
    Script,
    around,
    between,
    cut_share,
    hang,
    mean_timeout_s,
    run,
    sometimes,
    uniform,
)

SEEDS = range(2)
EFFECTS: list[Effect] = ["write", "read"]
RATES = [0.2, 50.0]  # one after the other; a hundred in flight, so that a window is over before its late answers come

SIGMA = 0.3
USUAL = around(1.5, SIGMA)
PLAIN_S = 1.5 * exp(1.645 * SIGMA) * 1.6  # the time-out that belongs to USUAL
HEAVY = uniform(PLAIN_S, 2 * PLAIN_S)


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("rate_per_s", RATES)
def test_ten_percent_hangs_do_not_move_it(effect: Effect, rate_per_s: float) -> None:
    """DESIGN 4.3, F114: 10 % that never answer move the time-out by less than 10 %, from the first call or later."""
    for seed in SEEDS:
        clean = run(USUAL, seed=seed, calls=3500, rate_per_s=rate_per_s, effect=effect)
        for began in (0, 1000):
            script = between(began, 3500, sometimes(0.1, hang, USUAL), USUAL)
            hangs = run(script, seed=seed, calls=3500, rate_per_s=rate_per_s, effect=effect)
            moved = mean_timeout_s(hangs[1000:]) / mean_timeout_s(clean[1000:]) - 1.0
            assert abs(moved) < 0.1


@pytest.mark.parametrize("rate_per_s", RATES)
def test_heavy_writes_that_nobody_declared_are_learnt(rate_per_s: float) -> None:
    """DESIGN 4.3: 8 % of writes that take up to twice the time-out end with under 1 % false time-outs."""
    for seed in SEEDS:
        attempts = run(sometimes(0.08, HEAVY, USUAL), seed=seed, calls=8000, rate_per_s=rate_per_s)
        assert cut_share(attempts[1500:]) < 0.01


@pytest.mark.parametrize("rate_per_s", RATES)
def test_heavy_reads_that_nobody_declared_are_learnt(rate_per_s: float) -> None:
    """M: a read that is cut is cancelled and tells nothing, yet explorers bring 8 % down to under 2 %, on average."""
    script = sometimes(0.08, HEAVY, USUAL)
    runs = [run(script, seed=seed, calls=9000, rate_per_s=rate_per_s, effect="read") for seed in range(6)]
    assert sum(cut_share(attempts[5000:]) for attempts in runs) / len(runs) < 0.02


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_slow_phase_is_followed_and_left(effect: Effect) -> None:
    """F114: 100 ms, then 5 s for 10 minutes, then 100 ms: up from the lower limit, and back within two windows."""
    quick, slow = uniform(0.1, 0.1), uniform(5.0, 5.0)
    for seed in SEEDS:
        attempts = run(between(500, 620, slow, quick), seed=seed, calls=1000, rate_per_s=0.2, effect=effect)
        assert max(attempt.timeout_s for attempt in attempts[450:500]) <= 2.3
        assert cut_share(attempts[580:620]) == 0.0
        assert max(attempt.timeout_s for attempt in attempts[560:620]) <= 5.0 * 1.6 * 1.15
        assert max(attempt.timeout_s for attempt in attempts[820:]) <= 2.3


@pytest.mark.parametrize("effect", EFFECTS)
def test_work_beyond_twice_the_time_out_is_learnt(effect: Effect) -> None:
    """F113: a third of the calls take 24 times as long as the others; explorers that reach further find it out."""
    for seed in SEEDS:
        script = sometimes(0.3, uniform(11.0, 13.0), uniform(0.4, 0.6))
        attempts = run(script, seed=seed, calls=4000, rate_per_s=10.0, effect=effect)
        assert cut_share(attempts[3000:]) < 0.001


@pytest.mark.parametrize("effect", EFFECTS)
def test_honest_work_is_told_from_hangs(effect: Effect) -> None:
    """F113, F114: while 10 % hang for good, the rest may slow down threefold; the time-out follows the rest only."""
    usual: Script = between(1500, 5000, uniform(4.0, 5.0), uniform(1.2, 1.8))
    for seed in SEEDS:
        attempts = run(sometimes(0.1, hang, usual), seed=seed, calls=5000, rate_per_s=10.0, effect=effect)
        assert cut_share(attempts[3500:]) < 0.001
        assert mean_timeout_s(attempts[3500:]) < 5.0 * 1.6 * 1.05


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_outage_does_not_raise_it(effect: Effect) -> None:
    """M: when nothing answers any more the time-out stays where it was, within its spread and a tenth."""
    for seed in SEEDS:
        attempts = run(
            between(1000, 3000, hang, uniform(3.0, 4.0)), seed=seed, calls=3000, rate_per_s=5.0, effect=effect
        )
        assert max(attempt.timeout_s for attempt in attempts[1000:]) <= 4.0 * 1.6 * 1.15 * 1.1


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["answered", "cut", "late", "unfair"]),
        st.floats(min_value=0.0, max_value=200.0),
        st.floats(min_value=0.1, max_value=100.0),
    ),
    max_size=150,
)
DECLARED = st.none() | st.floats(min_value=0.5, max_value=300.0)


@given(STEPS, DECLARED, st.booleans(), st.randoms(use_true_random=False))
def test_no_course_of_events_leaves_the_limits(
    steps: list[tuple[str, float, float]], declared_s: float | None, heavy: bool, chance: Random
) -> None:
    """B8, D5, F113: never above the limit (a declared one is spread), and explorers leave room for a plain attempt."""
    options = TimeoutOptions(samples_min=1, explore_share=0.3)
    policy = Timeouts(options, chance.random)
    usual_s = options.heavy_max_s if heavy else options.max_s
    high_s = declared_s * (1.0 + options.spread) if declared_s is not None else usual_s
    now = 0.0
    for step, duration_s, remaining_s in steps:
        now += 1.0
        call = Call(
            id="c",
            target="b",
            agent="b",
            task_type="t",
            heavy=heavy,
            skill_timeout_s=declared_s,
            deadline=now + remaining_s,
        )
        plan = policy.plan(call, now)
        assert min(options.min_s, declared_s or usual_s) <= plan.plain_s <= plan.timeout_s <= high_s
        assert 0.0 <= plan.fair_s <= plan.plain_s
        assert not plan.explored or plan.timeout_s + plan.plain_s <= remaining_s + 1e-9
        if step == "answered":
            policy.answered(plan, min(duration_s, plan.timeout_s))
        else:
            policy.cut(plan, plan.timeout_s if step != "unfair" else plan.fair_s / 2)
        if step == "late":
            policy.late(plan, plan.timeout_s + duration_s)
