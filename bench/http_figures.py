"""From phases to the figures of `bench.http`: ratios are taken inside a round, medians over the rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from msgspec import Struct

from bench.figures import quantile
from bench.http_load import Took

OURS: Final = "agentgate"
DIRECT: Final = "direct"
BUSY_BELOW: Final = 0.03  # a core with less idle time than that had no more to give
DISTURBED_ABOVE: Final = 0.1
NOT_HELD_ABOVE: Final = 0.02


class Measured(Struct, frozen=True, kw_only=True):
    """One target in one round."""

    full: Took
    steady: Took | None
    rss_mib: float | None


Round = dict[str, Measured]


class Row(Struct, frozen=True, kw_only=True):
    """What one target came to."""

    requests_per_s: float
    requests_per_s_range: tuple[float, float]
    cpu_us_per_request: float | None
    p50_ms: float | None
    p99_ms: float | None
    added_p50_ms: float | None
    added_p99_ms: float | None
    full_load_p50_ms: float
    full_load_p99_ms: float
    rss_mib: float | None
    is_bound_by_load: bool


class Figures(Struct, frozen=True, kw_only=True):
    """What a measurement came to; docs/explanation/performance.md says what each figure is."""

    ratios: dict[str, float]
    ratio_ranges: dict[str, tuple[float, float]]
    cpu_ratios: dict[str, float]
    targets: dict[str, Row]
    missing: dict[str, str]
    others: float
    """How much of the two cores went to processes that have no part in this, in cores."""
    rounds: int
    connections: int
    payload_bytes: int
    notes: list[str]


def rows(rounds: Sequence[Round]) -> dict[str, Row]:
    """A row for each target."""
    return {name: _row(name, rounds) for name in rounds[0]}


def ratios(rounds: Sequence[Round], figure: Callable[[Measured], float | None]) -> dict[str, list[float]]:
    """Ours over theirs, of each target and in each round; a target without this figure is left out."""
    theirs_names = [name for name in rounds[0] if not name.startswith(OURS)]
    found: dict[str, list[float]] = {}
    for name in theirs_names if OURS in rounds[0] else ():
        for one in rounds:
            ours, theirs = figure(one[OURS]), figure(one[name])
            if ours and theirs:
                found.setdefault(name, []).append(ours / theirs)
    return found


def per_s(one: Measured) -> float:
    """Requests a second at full load."""
    return len(one.full.latencies) / one.full.seconds


def per_cpu_s(one: Measured) -> float | None:
    """Requests a second of the target's processor time at full load."""
    return len(one.full.latencies) / one.full.cpu_s if one.full.cpu_s else None


def warnings(rounds: Sequence[Round], steady_per_s: float) -> list[str]:
    """What keeps these figures from meaning what they say."""
    found = [
        f"{name}: the load's core had no time left, so its requests/s and its ratio are bounds; see CPU a request"
        for name in rounds[0]
        if name != DIRECT and _is_bound(name, rounds)
    ]
    found += [
        f"{name}: did not keep up with {steady_per_s:g} requests/s, so its latencies there say little"
        for name in rounds[0]
        if any(_is_not_held(one[name], steady_per_s) for one in rounds)
    ]
    if (taken := others(rounds)) > DISTURBED_ABOVE:
        found.append(f"other processes took {taken:.2f} of the two cores meanwhile: the figures are noisy")
    return found


def others(rounds: Sequence[Round]) -> float:
    """How much of the two cores went to processes that have no part in this."""
    return median(one[name].full.others for one in rounds for name in one)


def _row(name: str, rounds: Sequence[Round]) -> Row:
    rates = [per_s(one[name]) for one in rounds]
    cpu_s = [1e6 / rate for one in rounds if (rate := per_cpu_s(one[name])) is not None]
    is_between = name != DIRECT and DIRECT in rounds[0]

    def full(share: float) -> float:
        return round(median(1e3 * quantile(one[name].full.latencies, share) for one in rounds), 3)

    def steady(share: float, name: str = name) -> list[float]:
        phases = [one[name].steady for one in rounds]
        return [1e3 * quantile(phase.latencies, share) for phase in phases if phase is not None]

    def added(share: float) -> list[float]:
        return [ms - direct for ms, direct in zip(steady(share), steady(share, DIRECT), strict=False)]

    return Row(
        requests_per_s=round(median(rates)),
        requests_per_s_range=(round(min(rates)), round(max(rates))),
        cpu_us_per_request=_median(cpu_s, 1),
        p50_ms=_median(steady(0.5), 3),
        p99_ms=_median(steady(0.99), 3),
        added_p50_ms=_median(added(0.5), 3) if is_between else None,
        added_p99_ms=_median(added(0.99), 3) if is_between else None,
        full_load_p50_ms=full(0.5),
        full_load_p99_ms=full(0.99),
        rss_mib=_median([one[name].rss_mib for one in rounds], 1),
        is_bound_by_load=_is_bound(name, rounds),
    )


def _is_bound(name: str, rounds: Sequence[Round]) -> bool:
    """Whether the load had no time left while the target had some."""
    phases = [one[name].full for one in rounds]
    return median(p.load_idle for p in phases) < BUSY_BELOW <= median(p.target_idle for p in phases)


def _is_not_held(one: Measured, steady_per_s: float) -> bool:
    return one.steady is not None and one.steady.unsent > NOT_HELD_ABOVE * steady_per_s * one.steady.seconds


def _median(values: Sequence[float | None], digits: int) -> float | None:
    known = [value for value in values if value is not None]
    return round(median(known), digits) if known else None
