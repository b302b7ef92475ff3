"""What the wait graph costs: `python -m bench.waits [--json] [--quick]`.

A graph is kept at 10 000 live waits while waits begin, change their aim and end as those of calls do
(`bench.wait_traffic`); each begin and each change is timed together with its check. Then a chain of 5 000 waits is
checked from its beginning, and the timer's scan goes over 100 000 waits with some knots among them, in slices of 2 ms.
Nothing but one processor is used, for some seconds.
"""

from __future__ import annotations

import argparse
from random import Random
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import Final

import msgspec
from msgspec import Struct

from agentgate.cli.gate import calm_collector
from agentgate.core.open_wait import OpenWait, UnitFacts
from agentgate.core.wait_scan import Scan
from agentgate.core.waits import Waits
from bench.figures import quantile
from bench.wait_traffic import Aimed, Desk, Traffic

LIVE_WAITS: Final = 10_000
CHECKS: Final = 100_000
CHAIN: Final = 5_000
WHOLE: Final = 100_000
QUICK_SHARE: Final = 20  # a smoke test is so much smaller
WAITS_PER_AGENT: Final = 10
WAITS_PER_RUNNING: Final = 4  # about how deep the chains are in the mean
RINGS: Final = (2, 3, 5, 8, 50, 200)  # units of each knot of calls that the scan has to find
POOL: Final = 8
SLICE_NS: Final = 2_000_000  # as the gate's timer: then others have their turn
STEP: Final = 100  # nodes between two looks at the clock
ROUNDS: Final = 5


class Figures(Struct, frozen=True, kw_only=True):
    """What a measurement came to; the budgets are in docs/explanation/performance.md."""

    insert_check_p50_us: float
    insert_check_p99_us: float
    live_waits: int
    checks: int
    refused: int
    chain_5000_ms: float
    whole_graph_100k_ms: float
    longest_loop_hold_ms: float
    knots: int


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.waits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--quick", action="store_true", help="a smoke test of a second; its figures mean little")
    options = parser.parse_args()
    found = measure(share=QUICK_SHARE if options.quick else 1)
    print(msgspec.json.encode(found).decode() if options.json else for_people(found))


def measure(*, share: int) -> Figures:
    """All figures, of graphs that are so many times smaller than they should be."""
    traffic = steady(LIVE_WAITS // share, CHECKS // share)
    chain_ns = median(chain(CHAIN // share) for _ in range(ROUNDS))
    whole = steady(WHOLE // share, 0).waits
    planted = plant(whole)
    scans = [scanned(whole, planted) for _ in range(ROUNDS)]
    return Figures(
        insert_check_p50_us=round(quantile(traffic.took_ns, 0.5) / 1e3, 1),
        insert_check_p99_us=round(quantile(traffic.took_ns, 0.99) / 1e3, 1),
        live_waits=LIVE_WAITS // share,
        checks=len(traffic.took_ns),
        refused=traffic.refused,
        chain_5000_ms=round(chain_ns / 1e6, 2),
        whole_graph_100k_ms=round(median(sum(one.took_ns) for one in scans) / 1e6, 1),
        longest_loop_hold_ms=round(max(max(one.cpu_ns) for one in scans) / 1e6, 2),
        knots=planted,
    )


def steady(live_waits: int, checks: int) -> Traffic:
    """Traffic that has reached its size, and then so many checks at that size; only those are timed."""
    traffic = Traffic(live_waits // WAITS_PER_AGENT, live_waits // WAITS_PER_RUNNING, Random(1))
    while traffic.live_waits < live_waits:
        traffic.grow()
    calm_collector()
    traffic.took_ns.clear()
    while len(traffic.took_ns) < checks:
        if traffic.live_waits < live_waits:
            traffic.grow()
        else:
            traffic.shrink()
    return traffic


def chain(length: int) -> int:
    """How long the check of a wait takes at which so long a chain begins, in ns."""
    waits = Waits()
    for number in range(length + 1):
        waits.begin(UnitFacts(unit=f"link-{number}", agent="a", task_type="t"))
    links = [waiting(waits, f"link-{number}", f"link-{number + 1}") for number in range(length)]
    began = perf_counter_ns()
    knot = waits.check(links[0])
    took = perf_counter_ns() - began
    assert knot is None
    return took


def plant(waits: Waits) -> int:
    """Knots of several sizes, of calls and of two full agents that wait for one another; how many they are."""
    for ring, size in enumerate(RINGS):
        units = [f"ring-{ring}-{number}" for number in range(size)]
        for unit in units:
            waits.begin(UnitFacts(unit=unit, agent="a", task_type="t"))
        for unit, following in zip(units, [*units[1:], units[0]], strict=True):
            waiting(waits, unit, following)
    desks = [Desk(layer=0, slots=POOL) for _ in range(2)]
    for desk, other in zip(desks, reversed(desks), strict=True):
        for number in range(POOL):
            unit = f"full-{len(desk.running)}-{number}-{id(desk)}"
            desk.running[unit] = None
            waits.begin(UnitFacts(unit=unit, agent="a", task_type="t"))
            waits.open(OpenWait(unit=unit, kind="call", aim=Aimed([(other,)])))
    return len(RINGS) + 1


def waiting(waits: Waits, unit: str, following: str) -> OpenWait:
    """A wait of one unit for another, opened without a check."""
    wait = OpenWait(unit=unit, kind="call", aim=Aimed([(following,)]))
    waits.open(wait)
    return wait


class Slices(Struct):
    """How long each slice of a scan took, and how much of that was its own: neighbours hold it up as well."""

    took_ns: list[int] = []
    cpu_ns: list[int] = []


def scanned(waits: Waits, planted: int) -> Slices:
    """A scan of the whole graph, in slices; it has to find as many knots as were planted."""
    slices = Slices()
    found = 0
    began, cpu_began = perf_counter_ns(), thread_time_ns()
    scan = Scan(waits, 0.0)
    while not scan.done:
        tangle = scan.step(STEP)
        if tangle is not None:
            found += 1
            tangle.knot(tangle.members[0].unit)
        if perf_counter_ns() - began >= SLICE_NS or scan.done:
            slices.took_ns.append(perf_counter_ns() - began)
            slices.cpu_ns.append(thread_time_ns() - cpu_began)
            began, cpu_began = perf_counter_ns(), thread_time_ns()
    assert found == planted
    return slices


def for_people(found: Figures) -> str:
    """The figures as a table, each with its budget."""
    lines = [
        ("a wait begins and is checked, p99", f"{found.insert_check_p99_us:.0f} us", "<= 50"),
        ("a chain of 5 000 is checked", f"{found.chain_5000_ms:.1f} ms", "<= 10"),
        ("the timer looks at 100 000 waits", f"{found.whole_graph_100k_ms:.0f} ms", "<= 500"),
        ("its longest slice", f"{found.longest_loop_hold_ms:.1f} ms", "<= 5"),
    ]
    table = "\n".join(f"  {name:<36}{value:>10}   {budget}" for name, value, budget in lines)
    return f"What the wait graph costs with {found.live_waits:,} live waits (right: the budget)\n\n{table}"


if __name__ == "__main__":
    main()
