"""What a call over HTTP costs, beside other gateways: `python -m bench.http [--json] [--peers envoy,nginx]`.

The same request goes to the same upstream directly, through AgentGate and through each peer, in turn and back again
(A B C, C B A, ...). Whatever is in between has one core for itself, the load and the upstream share another; all of it
on loopback, for under two minutes, on Linux. docs/explanation/performance.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
import psutil
from msgspec import Struct

from bench import http_load, http_wire, messages, processes
from bench.http_figures import Figures, Measured, Round, Row, others, per_cpu_s, per_s, ratios, rows, warnings
from bench.http_load import Failed, Job, Took
from bench.peers import CHAT, Peer, Place, Target, Upstream, chat
from bench.peers.agentgate import AgentGate
from bench.peers.direct import Direct
from bench.peers.envoy import Envoy
from bench.peers.litellm import LiteLlm
from bench.peers.nginx import Nginx
from bench.peers.portkey import Portkey

ALWAYS: Final[Sequence[Peer]] = (Direct(), AgentGate())
OTHERS: Final[Mapping[str, Peer]] = {peer.name: peer for peer in (Envoy(), Nginx(), LiteLlm(), Portkey())}
USUAL: Final = ("envoy", "nginx")  # the others take longer to start than to measure, and much to install

ROUNDS: Final = 12  # many short ones: a shared machine's speed changes by the second, and a ratio is of one round
FULL_S: Final = 0.6
STEADY_S: Final = 0.5
WARM_UP_S: Final = 0.2
CONNECTIONS: Final = 64
STEADY_PER_S: Final = 1000.0
PAYLOAD_BYTES: Final = 256
SLACK: Final = 3.0  # how much longer than planned a phase may take before it counts as stuck
SLACK_S: Final = 20.0


class Plan(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    peers: Sequence[str] = USUAL
    seconds: float = FULL_S
    rounds: int = ROUNDS
    payload_bytes: int = PAYLOAD_BYTES


def main() -> None:
    """Measure and print."""
    options = _arguments()
    processes.end_on_signals()
    found = measure(
        Plan(
            peers=options.peers,
            seconds=options.seconds,
            rounds=options.rounds,
            payload_bytes=options.payload_bytes,
        )
    )
    print(msgspec.json.encode(found).decode() if options.json else for_people(found))


def measure(plan: Plan) -> Figures:
    """Start everything, run the rounds, stop everything."""
    target_core, load_core = _cores()
    asked = [*ALWAYS, *(OTHERS[name] for name in plan.peers)]
    missing = {peer.name: what for peer in asked if (what := peer.missing())}
    present = [peer for peer in asked if peer.name not in missing]
    payload = messages.payload_of(plan.payload_bytes)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentgate-bench-")))
        with processes.on_core(load_core):
            load = stack.enter_context(processes.spawned(http_load.main, _upstream()))
        port = processes.receive(load, processes.START_S)
        targets: dict[str, Target] = {}
        for peer in present:
            place = Place(folder=folder / peer.name, upstream_port=port, payload=payload)
            place.folder.mkdir()
            with processes.on_core(target_core):
                targets |= stack.enter_context(peer.running(place))
        bench = Bench(plan, load, target_core, targets)
        done = [bench.round(list(targets) if turn % 2 == 0 else list(reversed(targets))) for turn in range(plan.rounds)]
    found = ratios(done, per_s)
    return Figures(
        ratios={name: round(median(values), 3) for name, values in found.items()},
        ratio_ranges={name: (round(min(values), 3), round(max(values), 3)) for name, values in found.items()},
        cpu_ratios={name: round(median(values), 3) for name, values in ratios(done, per_cpu_s).items()},
        targets=rows(done),
        missing=missing,
        others=round(others(done), 2),
        rounds=plan.rounds,
        connections=CONNECTIONS,
        payload_bytes=len(payload),
        notes=[*_notes(), *(peer.note for peer in present), *warnings(done, STEADY_PER_S)],
    )


class Bench:
    """The phases of a round."""

    def __init__(self, plan: Plan, load: Connection, core: int, targets: Mapping[str, Target]) -> None:
        self._plan = plan
        self._load = load
        self._core = core
        self._targets = targets

    def round(self, order: Sequence[str]) -> Round:
        """Every target once, in this order."""
        return {name: self._measured(name) for name in order}

    def _measured(self, name: str) -> Measured:
        target = self._targets[name]
        tree = [] if target.pid is None else _tree(target.pid)
        full = self._phase(name, tree, self._plan.seconds, None)
        rss = sum(process.memory_info().rss for process in tree) / 2**20 if tree else None
        steady_s = min(STEADY_S, self._plan.seconds)
        steady = self._phase(name, tree, steady_s, STEADY_PER_S) if target.is_steady else None
        return Measured(full=full, steady=steady, rss_mib=rss)

    def _phase(self, name: str, tree: Sequence[psutil.Process], seconds: float, per_s: float | None) -> Took:
        target = self._targets[name]
        warm_up_s = min(WARM_UP_S, seconds)
        job = Job(
            port=target.port,
            request=target.request,
            pids=tuple(process.pid for process in tree),
            core=self._core,
            connections=CONNECTIONS,
            seconds=seconds,
            warm_up_s=warm_up_s,
            per_s=per_s,
        )
        self._load.send(job)
        took: Took | Failed = processes.receive(self._load, (seconds + warm_up_s) * SLACK + SLACK_S)
        if isinstance(took, Took):
            return took
        raise RuntimeError(f"{name}: {took.why}")


def for_people(found: Figures) -> str:
    """The figures as a table."""
    head = (
        "",
        "requests/s",
        "CPU us",
        "p50 ms",
        "p99 ms",
        "added p50",
        "added p99",
        "RSS MiB",
        "AgentGate is",
        "by CPU",
    )
    lines = [_line(name, row, found) for name, row in found.targets.items()]
    table = "\n".join("  " + f"{line[0]:<16}" + "".join(f"{cell:>13}" for cell in line[1:]) for line in (head, *lines))
    missing = "".join(f"\n  {name} was not measured: {what}" for name, what in found.missing.items())
    notes = "\n".join(f"  {note}" for note in found.notes)
    return f"What a call over HTTP costs, beside other ways\n\n{table}\n{missing}\n{notes}"


def _line(name: str, row: Row, found: Figures) -> tuple[str, ...]:
    def ms(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    def times(values: Mapping[str, float]) -> str:
        return f"{values[name]:.2f} x" if name in values else ""

    return (
        name,
        f"{'>= ' if row.is_bound_by_load else ''}{row.requests_per_s:,.0f}",
        "" if row.cpu_us_per_request is None else f"{row.cpu_us_per_request:.0f}",
        ms(row.p50_ms),
        ms(row.p99_ms),
        ms(row.added_p50_ms),
        ms(row.added_p99_ms),
        "" if row.rss_mib is None else f"{row.rss_mib:.0f}",
        times(found.ratios),
        times(found.cpu_ratios),
    )


def _notes() -> list[str]:
    return [
        f"requests/s and CPU: {CONNECTIONS} connections, one request out on each; p50, p99: {STEADY_PER_S:g} a second",
        "a request's time at the steady rate runs from when it was due; added: less the same, directly",
        "medians over interleaved rounds; compare ratios, absolute figures belong to this machine and hour",
    ]


def _upstream() -> Upstream:
    value = http_wire.answer(messages.VALUE)
    return Upstream(answers={CHAT.encode(): http_wire.answer(chat.completion(messages.VALUE))}, otherwise=value)


def _cores() -> tuple[int, int]:
    """One for what is in between, another for the load and the upstream."""
    if sys.platform != "linux":
        raise RuntimeError("this measurement needs Linux: processes are bound to cores, and the load uses epoll")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 1:
        raise RuntimeError("this measurement needs two cores, and this process may use one")
    return cores[0], cores[1]


def _tree(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.http", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument(
        "--seconds", type=_positive(float), default=FULL_S, help="of a phase at full load (%(default)s)"
    )
    parser.add_argument(
        "--rounds", type=_positive(int), default=ROUNDS, help="how often each is measured (%(default)s)"
    )
    parser.add_argument("--payload-bytes", type=_positive(int), default=PAYLOAD_BYTES, help="about (%(default)s)")
    known = ", ".join(OTHERS)
    parser.add_argument("--peers", type=_names, default=USUAL, help=f"`all`, or some of {known} (envoy,nginx)")
    return parser.parse_args()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(OTHERS) if text == "all" else tuple(text.split(","))
    if unknown := [name for name in names if name not in OTHERS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is none of all, {', '.join(OTHERS)}")
    return names


def _positive(kind: Callable[[str], float]) -> Callable[[str], Any]:
    def number(text: str) -> float:
        if (value := kind(text)) <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not more than 0")
        return value

    return number


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"bench.http: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
