"""`python -m agentgate.testing.sim --seeds 500`: many worlds, one seed each; exit code 1 if a promise was broken.

A seed that failed is run again with `--seed N --store S --verbose`, and belongs into `tests/sim/seeds.txt`.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from agentgate.testing.loop import NothingCanWake, run_virtual
from agentgate.testing.witness import Broken
from agentgate.testing.world import StoreKind, World

FAILURES_SHOWN: Final = 5  # in full; of the others the seed
MEMORY_DISK: Final = Path("/dev/shm")  # a run does not need its file to outlive it  # noqa: S108 - used only as a place for a private directory


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one world."""

    seed: int
    store: StoreKind
    failure: str  # empty: every promise was kept
    lines: tuple[str, ...]
    calls: int


def run_world(seed: int, store: StoreKind, *, keep_lines: bool = False) -> Result:
    """One world from start to end, in this process."""
    quieten()
    with tempfile.TemporaryDirectory(
        prefix="agentgate-sim-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None
    ) as name:
        world = World(seed, store, directory=Path(name))
        failure = ""
        try:
            run_virtual(world.run)
        except (Broken, NothingCanWake, BaseExceptionGroup) as error:
            failure = str(error) if isinstance(error, Broken) else f"seed {seed}, store {store}: {error!r}"
    return Result(seed, store, failure, tuple(world.trace()) if keep_lines else (), len(world.witness.asked))


def quieten() -> None:
    """The platform's own log would be thousands of lines a world; the witness has what matters."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger("agentgate").setLevel(logging.CRITICAL)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    options = _parse(arguments)
    stores: list[StoreKind] = ["memory", "sqlite"] if options.store == "both" else [options.store]
    seeds = [options.seed] if options.seed is not None else range(options.start, options.start + options.seeds)
    jobs = [(seed, stores[seed % len(stores)]) for seed in seeds]
    if options.seed is not None:
        jobs = [(options.seed, store) for store in stores]
    began = time.monotonic()
    failures = _report(_results(jobs, options.jobs, keep_lines=options.verbose), len(jobs), verbose=options.verbose)
    seconds = time.monotonic() - began
    _say(f"{len(jobs)} worlds in {seconds:.1f} s, {len(failures)} broken")
    for failure in failures:
        _say(f"  {failure.seed} {failure.store}")
    return 1 if failures else 0


def _results(jobs: list[tuple[int, StoreKind]], processes: int, *, keep_lines: bool) -> Iterator[Result]:
    if processes == 1 or len(jobs) == 1:
        for seed, store in jobs:
            yield run_world(seed, store, keep_lines=keep_lines)
        return
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(run_world, seed, store, keep_lines=keep_lines) for seed, store in jobs]
        for future in as_completed(futures):
            yield future.result()


def _report(results: Iterator[Result], total: int, *, verbose: bool) -> list[Result]:
    failures: list[Result] = []
    calls = 0
    for done, result in enumerate(results, 1):
        calls += result.calls
        if verbose:
            _say("\n".join(result.lines))
        if result.failure:
            failures.append(result)
            if len(failures) <= FAILURES_SHOWN:
                _say(f"{result.failure}\n")
        if sys.stderr.isatty() or done % 50 == 0 or done == total:
            sys.stderr.write(f"\r{done} of {total} worlds, {calls} calls, {len(failures)} broken")
            sys.stderr.flush()
    sys.stderr.write("\n")
    return sorted(failures, key=lambda failure: (failure.seed, failure.store))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m agentgate.testing.sim", description="Whole platforms in virtual time."
    )
    parser.add_argument("--seeds", type=int, default=100, help="how many worlds (default %(default)s)")
    parser.add_argument("--start", type=int, default=1, help="the first seed (default %(default)s)")
    parser.add_argument("--seed", type=int, help="this one seed only")
    parser.add_argument("--store", choices=("memory", "sqlite", "both"), default="both", help="both: in turn")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes (default %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="print the whole log of every world")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
