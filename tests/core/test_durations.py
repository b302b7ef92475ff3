"""A window of durations, some without an end, by example."""

from __future__ import annotations

import pytest

from agentgate.core.durations import Durations


def window(size: int, *samples: float | None) -> Durations:
    durations = Durations(size)
    for sample in samples:
        if sample is None:
            durations.add_censored()
        else:
            durations.add(sample)
    return durations


@pytest.mark.parametrize(
    ("percent", "expected"), [(1, 1.0), (5, 1.0), (6, 2.0), (50, 10.0), (95, 19.0), (96, 20.0), (100, 20.0)]
)
def test_a_quantile_is_a_duration_that_was_seen(percent: int, expected: float) -> None:
    """P95 of twenty durations is the nineteenth: the smallest that 95 % do not exceed."""
    durations = window(20, *(float(number) for number in range(20, 0, -1)))
    assert durations.quantile(percent, 20) == expected


def test_old_samples_leave() -> None:
    """B8: the last so many count, the censored among them."""
    durations = window(3, 5.0, None, 1.0, 2.0)
    assert (durations.known, len(durations.censored)) == ([1.0, 2.0], 1)
    durations.add(3.0)
    assert (durations.known, len(durations.censored)) == ([1.0, 2.0, 3.0], 0)
    durations.add_censored()
    assert durations.known == [2.0, 3.0]


def test_censored_samples_lie_above_all_durations() -> None:
    """F114: cut calls are not dropped, they push the quantile up to the longest duration known."""
    durations = window(100, *[1.0] * 94, 7.0, *[None] * 5)
    assert durations.quantile(95, 95) == 1.0
    assert durations.quantile(95, 100) == 7.0
    assert durations.quantile(100, 100) == 7.0


def test_a_late_answer_replaces_its_own_sample() -> None:
    """M: the true duration takes the place of the censored sample, in the order of the window."""
    durations = window(3, 1.0, 2.0)
    number = durations.add_censored()
    durations.resolve(number, 9.0)
    assert (durations.known, durations.censored) == ([1.0, 2.0, 9.0], {})
    for _ in range(3):
        durations.add(4.0)
    assert durations.known == [4.0, 4.0, 4.0]


def test_a_late_answer_whose_sample_has_left_replaces_the_oldest() -> None:
    """M: at a high rate answers come when their window is over; then one stands for the other."""
    durations = window(3, None, 1.0, None, None)
    assert list(durations.censored) == [2, 3]
    durations.resolve(0, 9.0)
    assert (durations.known, list(durations.censored)) == ([1.0, 9.0], [3])
    durations.resolve(1, 8.0)
    durations.resolve(0, 7.0)
    assert (durations.known, durations.censored) == ([7.0, 8.0, 9.0], {})


@pytest.mark.parametrize(("share", "resolved"), [(0.0, 0), (0.24, 1), (0.5, 2), (1.0, 4)])
def test_a_share_of_the_censored_is_resolved(share: float, resolved: int) -> None:
    """M: an explorer speaks for a share of those that were cut, the oldest first."""
    durations = window(10, None, None, None, None)
    durations.resolve_share(share, 6.0)
    assert durations.known == [6.0] * resolved
    assert list(durations.censored) == list(range(resolved, 4))
