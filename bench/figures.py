"""From rounds to figures: ratios are taken inside a round, medians over the rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from msgspec import Struct

from bench.load import Round


class Figures(Struct, frozen=True, kw_only=True):
    """What a measurement came to; the budgets are in docs/explanation/performance.md."""

    calls_per_s: float
    gate_cpu_us_per_call: float
    added_p50_ms: float
    added_p99_ms: float
    keyed_ratio: float
    keyed_p99_ms_beside_saturation: float
    keyed_calls_per_s: float
    keyed_gate_cpu_us_per_call: float
    steady_gate_cpu_us_per_call: float
    direct_p50_ms: float
    direct_p99_ms: float
    rounds: int
    notes: list[str]


def figures(rounds: Sequence[Round], notes: Sequence[str]) -> Figures:
    """The figures of these rounds."""

    def over_rounds(figure: Callable[[Round], float], digits: int) -> float:
        return round(median(figure(one) for one in rounds), digits)

    def added_ms(one: Round, share: float) -> float:
        return 1e3 * (quantile(one.gate_latencies, share) - quantile(one.direct_latencies, share))

    return Figures(
        calls_per_s=over_rounds(lambda one: one.read_calls / one.read_s, 0),
        gate_cpu_us_per_call=over_rounds(lambda one: 1e6 * one.read_cpu_s / one.read_calls, 1),
        added_p50_ms=over_rounds(lambda one: added_ms(one, 0.5), 3),
        added_p99_ms=over_rounds(lambda one: added_ms(one, 0.99), 3),
        keyed_ratio=over_rounds(lambda one: (one.keyed_calls / one.keyed_s) / (one.read_calls / one.read_s), 3),
        keyed_p99_ms_beside_saturation=over_rounds(lambda one: 1e3 * quantile(one.keyed_latencies_beside, 0.99), 1),
        keyed_calls_per_s=over_rounds(lambda one: one.keyed_calls / one.keyed_s, 0),
        keyed_gate_cpu_us_per_call=over_rounds(lambda one: 1e6 * one.keyed_cpu_s / one.keyed_calls, 1),
        steady_gate_cpu_us_per_call=over_rounds(lambda one: 1e6 * one.steady_cpu_s / len(one.gate_latencies), 1),
        direct_p50_ms=over_rounds(lambda one: 1e3 * quantile(one.direct_latencies, 0.5), 3),
        direct_p99_ms=over_rounds(lambda one: 1e3 * quantile(one.direct_latencies, 0.99), 3),
        rounds=len(rounds),
        notes=list(notes),
    )


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share of all lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
