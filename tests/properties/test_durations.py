"""The window of durations against the plainest model of it: a list of samples."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.durations import Durations

STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "cut", "resolve", "share"]), st.integers(min_value=0, max_value=9)), max_size=100
)


@given(st.integers(min_value=1, max_value=12), STEPS)
def test_it_is_a_window_over_a_list(size: int, steps: list[tuple[str, int]]) -> None:
    """Any order of additions and resolutions leaves what a list of the last `size` samples would hold."""
    durations = Durations(size)
    samples: list[float | None] = []  # all of them; a censored one is None
    cut: list[int] = []

    def resolve_oldest(duration: float) -> None:
        open_ones = [number for number in range(max(0, len(samples) - size), len(samples)) if samples[number] is None]
        if open_ones:
            samples[open_ones[0]] = duration
        else:
            samples.append(duration)

    for step, number in steps:
        duration = float(number)
        if step == "add":
            durations.add(duration)
            samples.append(duration)
        elif step == "cut":
            cut.append(durations.add_censored())
            samples.append(None)
        elif step == "resolve" and cut:
            chosen = cut[number % len(cut)]
            durations.resolve(chosen, duration)
            if chosen >= len(samples) - size and samples[chosen] is None:
                samples[chosen] = duration
            else:
                resolve_oldest(duration)
        elif step == "share":
            for _ in range(round(number / 10 * samples[-size:].count(None))):
                resolve_oldest(duration)
            durations.resolve_share(number / 10, duration)
        window = samples[-size:]
        assert durations.known == sorted(sample for sample in window if sample is not None)
        assert len(durations.censored) == window.count(None)


@given(st.lists(st.floats(min_value=0.0, max_value=100.0), min_size=1, max_size=50), st.integers(1, 100))
def test_a_quantile_is_not_exceeded_by_that_many(values: list[float], percent: int) -> None:
    """At least `percent` of the samples are at or below the quantile, and fewer are below it."""
    durations = Durations(50)
    for value in values:
        durations.add(value)
    found = durations.quantile(percent, len(values))
    needed = ceil(percent * len(values) / 100)
    assert sum(value <= found for value in values) >= needed
    assert sum(value < found for value in values) < needed
