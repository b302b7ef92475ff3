"""Shows a run to people: a live picture at a terminal, plain lines elsewhere, and the summary at the end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agentgate.cli.demo.result import MEANINGS, Result
from agentgate.cli.demo.story import Story

EVENTS_SHOWN: Final = 8
PER_SECOND: Final = 4
COLOURS: Final = {"confirmed": "green", "declined": "cyan", "back_ordered": "yellow"}


@contextlib.contextmanager
def shown(story: Story, console: Console) -> Iterator[None]:
    """Show the run while it runs."""
    if not console.is_terminal:
        story.on_event = lambda at_s, text: console.print(f"{at_s:6.1f} s  {text}", highlight=False)
        yield
        return
    with Live(
        console=console, refresh_per_second=PER_SECOND, get_renderable=lambda: picture(story), transient=True
    ) as live:
        yield
        live.refresh()
    for at_s, text in story.events:
        console.print(f"[dim]{at_s:6.1f} s[/]  {text}", highlight=False)


def picture(story: Story) -> RenderableType:
    """The run at this moment."""
    return Group(_progress(story), _agents(story), _lines(story))


def summary(result: Result) -> RenderableType:
    """The figures, each with its meaning."""
    figures = result.as_json()
    mode = "" if result.wait_graph == "enforce" else f", wait_graph: {result.wait_graph}"
    table = Table(
        title=f"{result.verdict.orders} orders, seed {result.seed}, faults {figures['faults']}{mode}",
        box=None,
        show_header=False,
        title_justify="left",
    )
    table.add_column("", style="bold")
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("", style="dim")
    for group, meanings in MEANINGS.items():
        for place, (name, meaning) in enumerate(meanings.items()):
            value = figures[name]
            table.add_row("" if place else group, name.replace("_", " "), f"{value:,}", meaning)
        table.add_section()
    return table


def _progress(story: Story) -> RenderableType:
    row = Table.grid(padding=(0, 2))
    statuses = Text("  ").join(
        Text(f"{count} {status.replace('_', ' ')}", style=COLOURS.get(status, "red"))
        for status, count in sorted(story.statuses.items())
    )
    bar = ProgressBar(total=story.orders, completed=len(story.endings), width=40)
    row.add_row(f"{story.seconds:5.1f} s", bar, f"{len(story.endings)} of {story.orders} orders", statuses)
    return row


def _agents(story: Story) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    broken = {
        breaker["agent"]: breaker["state"].replace("_", "-")
        for breaker in sorted(story.breakers, key=lambda breaker: breaker["state"] != "closed")
        if breaker["state"] != "closed"
    }
    names = sorted(story.instances)
    for start in range(0, len(names), 4):
        table.add_row(
            *(
                Text(f"{name} breaker {broken[name]}", style="yellow") if name in broken else Text(name, style="dim")
                for name in names[start : start + 4]
            )
        )
    counts = story.counts
    table.add_row(
        f"{counts.calls} calls",
        f"{counts.retries} retries",
        f"{counts.replays + counts.joins} duplicates answered",
        f"{counts.breaker_opened} breaker openings",
    )
    return table


def _lines(story: Story) -> RenderableType:
    return Text("\n").join(Text(f"{at_s:6.1f} s  {text}") for at_s, text in story.events[-EVENTS_SHOWN:])
