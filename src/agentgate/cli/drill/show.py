"""A drill as a person (or a program) meets it: both columns, the bars, the verdict, the exit code."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from agentgate.chaos.bars import Judged, judge
from agentgate.chaos.drill import FILE, Found, Run, drills, read_drill
from agentgate.chaos.figures import as_text
from agentgate.chaos.rehearsal import Rehearsed, rehearse
from agentgate.cli import exits
from agentgate.cli.demo.crew import CrewProblem
from agentgate.cli.demo.plan import draw
from agentgate.cli.exits import CommandError
from agentgate.cli.output import print_json, print_table, say, shown

BARS: Final = ("BAR", "RUN", "IS", "HAS TO BE", "VERDICT", "MEANING")

Runs = Mapping[Run, Rehearsed]


def show_list(*, as_json: bool) -> None:
    """Print the drills that there are."""
    known = drills().values()
    if as_json:
        print_json({"drills": [{"name": found.name, "title": found.drill.title} for found in known]})
    else:
        print_table(("NAME", "WHAT GOES WRONG"), [(found.name, found.drill.title) for found in known])


def show_run(name: str, seed: int | None, *, compare: bool, live: bool, as_json: bool) -> int:
    """Run a drill and print what came of it; returns the exit code."""
    found = _found(name)
    seed = found.drill.seed if seed is None else seed
    wanted: tuple[Run, ...] = ("before", "after") if compare else ("after",)
    runs: dict[Run, Rehearsed] = {}
    for run in wanted:
        tell = (lambda _: None) if as_json else partial(_tell, run)
        runs[run] = run_live(found, run, seed, tell) if live else run_simulated(found, run, seed)
    judged = judge(found.drill.all_bars(), {run: came_of.figures for run, came_of in runs.items()})
    holds = all(one.holds for one in judged)
    if as_json:
        print_json(_report(found, seed, runs, judged, live=live))
    else:
        _print(found, runs, judged)
        say("Every bar holds." if holds else f"agentgate drill: {name} has missed a bar")
    return exits.DONE if holds else exits.FAILED


def run_simulated(found: Found, run: Run, seed: int) -> Rehearsed:
    """One run in virtual time."""
    from agentgate.cli.drill.simulated import simulated
    from agentgate.testing import run_virtual

    async def main() -> Rehearsed:
        async with simulated(found, run, seed) as scene:
            return await rehearse(found.drill, scene, partial(draw, seed))

    _keep_logs_out()
    return run_virtual(main)


def run_live(found: Found, run: Run, seed: int, tell: Callable[[str], None]) -> Rehearsed:
    """One run with real processes; `tell` hears what it is at, as that takes time."""
    from agentgate.cli.drill.live import live

    async def main() -> Rehearsed:
        tell("starting a gate and the agents ...")
        async with live(found, run) as scene:
            return await rehearse(found.drill, scene, partial(draw, seed), tell)

    try:
        return asyncio.run(main())
    except CrewProblem as problem:
        for line in str(problem).splitlines():
            say(line)
        raise CommandError("the drill could not be run; why is above") from None


def _tell(run: Run, what: str) -> None:
    say(f"{run}: {what}")


def _keep_logs_out() -> None:
    """What the gate and the agents of a rehearsal say is about failures that are meant."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.getLogger("agentgate").setLevel(logging.CRITICAL)


def _found(name: str) -> Found:
    known = drills()
    if name in known:
        return known[name]
    folder = Path(name).resolve()
    if (folder / FILE).is_file():
        return read_drill(folder)
    if folder.is_dir():
        raise CommandError(f"the folder {name} has no {FILE}, which says what the drill is", exits.MISUSED)
    raise CommandError(
        f"there is no drill {name!r}; there are: {', '.join(known)}, or a folder with a {FILE}", exits.MISUSED
    )


def _report(found: Found, seed: int, runs: Runs, judged: list[Judged], *, live: bool) -> dict[str, Any]:
    return {
        "drill": found.name,
        "title": found.drill.title,
        "seed": seed,
        "time": "real" if live else "simulated",
        "runs": runs,
        "bars": judged,
        "holds": all(one.holds for one in judged),
    }


def _print(found: Found, runs: Runs, judged: list[Judged]) -> None:
    drill = found.drill
    print(f"{drill.title}. {drill.story}")
    told = {"before": drill.before, "after": drill.after}
    for run, came_of in runs.items():
        print(f"{run.capitalize()}: {told[run]}")
        for finding in came_of.findings:
            if finding.kind == "deadlock":
                print(f"  the gate named {shown(finding.evidence['cycle'])}")
    print()
    names = dict.fromkeys(name for came_of in runs.values() for name in came_of.figures)
    columns = {name: [came_of.figures.get(name) for came_of in runs.values()] for name in names}
    rows = [
        (name, *(as_text(name, value) for value in values))
        for name, values in columns.items()
        if any(v is not None for v in values)
    ]
    print_table(("FIGURE", *(run.upper() for run in runs)), rows)
    print()
    verdicts = [
        (one.figure, one.run, as_text(one.figure, one.value), one.bar, "holds" if one.holds else "MISSED", one.meaning)
        for one in judged
    ]
    print_table(BARS, verdicts)
