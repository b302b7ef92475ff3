"""What a call over the link costs at the gate: `python -m bench.link [--json] [--quick]`.

One gate as a user starts it (`agentgate serve`, SQLite, every policy on its default), its agents in a second process
and its clients in a third; all of it on loopback, for about a minute. docs/explanation/performance.md says what the
figures mean. Figures depend on the machine; compare ratios, or two versions measured in turn on one machine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bench import agents, load, processes
from bench.figures import Figures, figures
from bench.load import IN_FLIGHT, PROBES_PER_S, SENDERS, STEADY_PER_S, Plan

PHASES: Final = 5
ROUNDS: Final = 5
PHASE_S: Final = 1.6
WARM_UP_S: Final = 0.4
QUICK_PHASE_S: Final = 0.3
QUICK_WARM_UP_S: Final = 0.1
SLACK: Final = 3.0  # how much longer than planned the load may take before it counts as stuck
SLACK_S: Final = 30.0

NOTES: Final = (
    f"{IN_FLIGHT} calls in flight from {SENDERS} senders, each below its default rate of 200/s: no limit is raised",
    f"added latency: {STEADY_PER_S:g} reads/s through the gate less the same frames to the agents' own socket",
    f"keyed: every call has a unique key, stored in SQLite with synchronous=FULL; {PROBES_PER_S:g}/s beside full load",
    "medians over interleaved rounds",
)


def main() -> None:
    """Measure and print."""
    options = _arguments()
    processes.end_on_signals()
    found = measure(quick=options.quick)
    if options.json:
        print(msgspec.json.encode(found).decode())
    else:
        print(for_people(found))


def measure(*, quick: bool) -> Figures:
    """Start everything, run the rounds, stop everything."""
    rounds = 1 if quick else ROUNDS
    phase_s, warm_up_s = (QUICK_PHASE_S, QUICK_WARM_UP_S) if quick else (PHASE_S, WARM_UP_S)
    planned_s = rounds * PHASES * (phase_s + warm_up_s)
    with (
        tempfile.TemporaryDirectory(prefix="agentgate-bench-") as folder,
        processes.gate(Path(folder)) as gate,
        processes.spawned(agents.main, gate.port) as agents_process,
    ):
        plan = Plan(
            gate_port=gate.port,
            direct_port=processes.receive(agents_process, processes.START_S),
            gate_pid=gate.pid,
            rounds=rounds,
            phase_s=phase_s,
            warm_up_s=warm_up_s,
        )
        with processes.spawned(load.main, plan) as load_process:
            done = processes.receive(load_process, planned_s * SLACK + SLACK_S)
    return figures(done, NOTES)


def for_people(found: Figures) -> str:
    """The figures as a table, each with its budget."""
    lines = [
        ("calls per second at full load", f"{found.calls_per_s:,.0f}", ""),
        ("gate CPU per call", f"{found.gate_cpu_us_per_call:.0f} us", "<= 100"),
        ("added latency, p50", f"{found.added_p50_ms:.2f} ms", "<= 0.5"),
        ("added latency, p99", f"{found.added_p99_ms:.2f} ms", "<= 2"),
        ("keyed and durable over unkeyed", f"{found.keyed_ratio:.2f}", ">= 0.6"),
        ("keyed p99 beside full load", f"{found.keyed_p99_ms_beside_saturation:.0f} ms", "<= 50"),
    ]
    table = "\n".join(f"  {name:<32}{value:>12}   {budget}" for name, value, budget in lines)
    notes = "\n".join(f"  {note}" for note in found.notes)
    return f"What a call over the link costs at the gate (right: the budget)\n\n{table}\n\n{notes}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.link", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="a smoke test of some seconds; its figures mean little")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"bench.link: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
