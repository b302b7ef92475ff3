"""The measurement of the link runs by itself; its timings are nobody's claim here."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import psutil

from bench.figures import Figures, quantile
from bench.storm import Storm, peak
from tests.tidy.checkout import ROOT

ASKED_FOR = {
    "calls_per_s",
    "gate_cpu_us_per_call",
    "added_p50_ms",
    "added_p99_ms",
    "keyed_ratio",
    "keyed_p99_ms_beside_saturation",
}


def test_the_link_is_measured_in_one_command() -> None:
    """`bench.link --quick --json` ends by itself with every figure asked for, and leaves no process behind."""
    ran = subprocess.run(
        [sys.executable, "-m", "bench.link", "--quick", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert msgspec.json.decode(ran.stdout).keys() >= ASKED_FOR
    found = msgspec.json.decode(ran.stdout, type=Figures)
    assert found.calls_per_s > found.keyed_calls_per_s * 0.5 > 0
    assert 0 < found.gate_cpu_us_per_call < 10_000
    assert 0 < found.direct_p50_ms <= found.direct_p99_ms
    assert found.added_p50_ms > 0, "a gate between costs something"
    assert found.keyed_p99_ms_beside_saturation > 0
    assert not psutil.Process().children(recursive=True)


def test_a_registration_storm_is_measured_in_one_command() -> None:
    """A5: `bench.storm --quick --json` ends by itself: everybody is in, and the directory was never above its limit."""
    ran = subprocess.run(
        [sys.executable, "-m", "bench.storm", "--quick", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    storms = msgspec.json.decode(ran.stdout, type=dict[str, list[Storm]])["storms"]
    assert [storm.name for storm in storms if storm.registration_ms == 0] == ["before", "after"]
    assert len(storms) == 4
    for storm in storms:
        assert storm.is_within_limit
        assert storm.tries >= storm.taken >= storm.registered_most > 0
    assert not psutil.Process().children(recursive=True)


def test_a_peak_is_over_any_second() -> None:
    """The most in any second, wherever it begins."""
    assert peak([]) == 0
    assert peak([3.9, 0.0, 3.1, 4.05, 5.2]) == 3


def test_a_quantile_is_one_of_the_values() -> None:
    """The quantile of a share is the value below which that share lies; of one value, that value."""
    values = [float(value) for value in range(100, 0, -1)]
    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 51.0, 100.0, 100.0]
    assert quantile([7.0], 0.99) == 7.0
