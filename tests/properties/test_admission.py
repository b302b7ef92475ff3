"""The limit on registrations, whoever comes when."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.admission import AGAIN_S_MAX, SPREAD_S, Admission, AdmissionOptions

arrivals = st.lists(st.tuples(st.floats(0, 0.5), st.booleans()), max_size=200)


@given(arrivals, st.floats(1, 100), st.integers(1, 20), st.integers())
def test_no_window_takes_more_newcomers_than_the_limit(
    steps: list[tuple[float, bool]], per_s: float, burst: int, seed: int
) -> None:
    """A5: in any window of w seconds at most burst + rate x w newcomers are taken, the known ones always."""
    policy = Admission(AdmissionOptions(hello_per_s=per_s, hello_burst=burst), random.Random(seed).random)
    now, taken = 0.0, []
    for pause_s, known in steps:
        now += pause_s
        wait_s = policy.ask(now, known=known)
        assert wait_s is None or (not known and 0 < wait_s <= AGAIN_S_MAX + SPREAD_S)
        if wait_s is None and not known:
            taken.append(now)
    for first, began in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + per_s * (taken[last] - began) + 1e-3


@given(st.integers(1, 500), st.floats(20, 200), st.integers(20, 100), st.integers())
def test_a_crowd_that_comes_when_it_was_told_is_in_soon(crowd: int, per_s: float, burst: int, seed: int) -> None:
    """A5: agents that start in one instant and come back when they were told are all in after little more than the time
    that the limit takes for them, and few are sent away more than once.
    """
    draws = random.Random(seed)
    policy = Admission(AdmissionOptions(hello_per_s=per_s, hello_burst=burst), draws.random)
    due = [0.0] * crowd
    asked, last = 0, 0.0
    while due:
        now = due.pop()
        wait_s = policy.ask(now, known=False)
        asked += 1
        if wait_s is None:
            last = now
        else:
            due = sorted([*due, now + wait_s], reverse=True)
    assert last <= 1.5 * max(0.0, crowd - burst) / per_s + 2 * SPREAD_S
    assert asked <= 3 * crowd
