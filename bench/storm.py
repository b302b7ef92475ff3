"""How a registration storm goes: `python -m bench.storm [--json] [--quick] [--agents 200]`.

Some hundred agents start in the same instant and say hello to one gate over real sockets of loopback, before (no limit,
agents that give up after a second and try again after another) and after (the limit, the SDK); with a directory as it
is, and with one that takes 20 ms of the gate for each registration. Every run ends by itself after half a minute.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from agentgate.core.admission import AdmissionOptions
from bench import processes, storm_gate, storm_team
from bench.storm_gate import GatePlan
from bench.storm_team import Kind, TeamPlan

AGENTS: Final = 200
LIMIT_S: Final = 30.0
QUICK_AGENTS: Final = 20
QUICK_LIMIT_S: Final = 3.0
SLOW_MS: Final = 20.0
SLOW_LIMIT: Final = AdmissionOptions(hello_per_s=30.0, hello_burst=30)  # well below the 50/s it manages
NO_LIMIT: Final = AdmissionOptions(hello_per_s=None)


class Storm(Struct, frozen=True, kw_only=True):
    """One run. Peaks are over any second; `all_s` None: they were never all registered within the time they had."""

    name: str
    agents: int
    registration_ms: float
    hello_per_s: float | None
    hello_burst: int
    all_s: float | None
    registered_most: int
    tries: int
    tries_peak_per_s: int
    taken: int
    taken_peak_per_s: int
    refused: int
    is_within_limit: bool


def main() -> None:
    """Measure and print."""
    options = _arguments()
    processes.end_on_signals()
    found = measure(options.agents or (QUICK_AGENTS if options.quick else AGENTS), quick=options.quick)
    print(msgspec.json.encode({"storms": found}).decode() if options.json else for_people(found))


def measure(agents: int, *, quick: bool) -> list[Storm]:
    """All four storms, one after the other."""
    limit_s = QUICK_LIMIT_S if quick else LIMIT_S
    plans: tuple[tuple[str, Kind, AdmissionOptions, float], ...] = (
        ("before", "naive", NO_LIMIT, 0.0),
        ("after", "sdk", AdmissionOptions(), 0.0),
        ("slow directory, before", "naive", NO_LIMIT, SLOW_MS),
        ("slow directory, after", "sdk", SLOW_LIMIT, SLOW_MS),
    )
    return [storm(name, kind, limit, slow_ms, agents, limit_s) for name, kind, limit, slow_ms in plans]


def storm(name: str, kind: Kind, limit: AdmissionOptions, slow_ms: float, agents: int, limit_s: float) -> Storm:
    """One run: a gate in a process of its own, the agents in another."""
    plan = GatePlan(registration_ms=slow_ms, hello_per_s=limit.hello_per_s, hello_burst=limit.hello_burst)
    with processes.spawned(storm_gate.main, plan) as gate:
        port = processes.receive(gate, processes.START_S)
        with processes.spawned(storm_team.main, TeamPlan(kind=kind, agents=agents, port=port, limit_s=limit_s)) as team:
            came = processes.receive(team, limit_s + processes.START_S)
        gate.send("over")
        heard = processes.receive(gate, processes.START_S)
    return Storm(
        name=name,
        agents=agents,
        registration_ms=slow_ms,
        hello_per_s=limit.hello_per_s,
        hello_burst=limit.hello_burst,
        all_s=None if came.all_s is None else round(came.all_s, 2),
        registered_most=came.most,
        tries=len(came.tries),
        tries_peak_per_s=peak(came.tries),
        taken=len(heard.taken),
        taken_peak_per_s=peak(heard.taken),
        refused=heard.refused,
        is_within_limit=limit.hello_per_s is None or peak(heard.taken) <= limit.hello_burst + limit.hello_per_s + 1,
    )


def peak(times: Sequence[float]) -> int:
    """The most in any second."""
    ordered = sorted(times)
    return max((bisect_left(ordered, began + 1.0) - place for place, began in enumerate(ordered)), default=0)


def for_people(found: Sequence[Storm]) -> str:
    """A line a storm."""
    lines = [f"{'':<24}{'all in':>10}{'at most':>9}{'tries':>7}{'tries/s':>9}{'taken/s':>9}{'refused':>9}{'limit':>12}"]
    for one in found:
        all_in = "never" if one.all_s is None else f"{one.all_s:.1f} s"
        limit = "none" if one.hello_per_s is None else f"{one.hello_per_s:g}/s+{one.hello_burst}"
        lines.append(
            f"{one.name:<24}{all_in:>10}{one.registered_most:>9}{one.tries:>7}{one.tries_peak_per_s:>9}"
            f"{one.taken_peak_per_s:>9}{one.refused:>9}{limit:>12}"
        )
    return f"{found[0].agents} agents start in the same instant (peaks over any second)\n\n" + "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.storm", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="a smoke test of some seconds; its figures mean little")
    parser.add_argument("--agents", type=int, default=0, help=f"how many start ({AGENTS})")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"bench.storm: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
