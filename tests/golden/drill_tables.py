"""What a drill shows, as a table: each figure that has a bar, before and after, in simulated time."""

from __future__ import annotations

from agentgate.chaos.drill import Run, drills
from agentgate.chaos.figures import as_text
from agentgate.cli.drill.show import run_simulated

HEAD = "| figure | before | after | bar | |\n|---|---|---|---|---|\n"


def compared(names: list[str]) -> str:
    """The table of this drill."""
    found = drills()[names[0]]
    runs: tuple[Run, ...] = ("before", "after")
    figures = [run_simulated(found, run, found.drill.seed).figures for run in runs]
    lines = [HEAD]
    for bar in found.drill.all_bars():
        values = " | ".join(as_text(bar.figure, one.get(bar.figure, 0.0)) for one in figures)
        lines.append(f"| `{bar.figure}` | {values} | {bar.run} {bar.text} | {bar.meaning} |\n")
    return "".join(lines)
