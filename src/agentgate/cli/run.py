"""`agentgate run`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from agentgate.adapters.clock import SystemChance
from agentgate.cli import exits
from agentgate.cli.exits import CommandError
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import say, shown
from agentgate.cli.signals import stop_signal
from agentgate.cli.supervisor import EXIT_REFUSED, Event, Stream, Supervisor, SupervisorOptions

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Python files that run an agent each.")]
TAIL_SHOWN: int = 5  # lines of a crash that are worth repeating among the output of others


def run(files: Files, url: Url = None, *, as_json: AsJson = False) -> None:
    """Run agents as supervised processes, one a file.

    A crashed agent is started again with back-off, one that asks for it (exit code 75) at once; after ten crashes in a
    row it is given up. SIGTERM or Ctrl-C lets every agent finish what it has in hand; a second one kills them.
    With --json, events are lines of JSON on standard output, and what agents print goes to standard error.
    Exit codes: 0 every agent ended in good order, 78 a setting of one is wrong or the gate refuses it, 1 one crashed
    for good or had to be killed.

    Example: agentgate run stock_agent.py order_agent.py
    """
    check_files(files)

    async def main() -> int:
        supervisor = make_supervisor(files, environment(url), as_json=as_json)
        stop = stop_signal(supervisor.kill)
        async with supervisor:
            await first_of(stop, supervisor.ended)
        failed = EXIT_REFUSED if supervisor.is_refused else exits.FAILED
        return exits.DONE if supervisor.is_clean else failed

    code = asyncio.run(main())
    if code:
        raise typer.Exit(code)


def check_files(files: Sequence[Path]) -> None:
    """Raises `CommandError` for a file that is not there."""
    for file in files:
        if not file.is_file():
            raise CommandError(f"there is no file {file}", exits.MISUSED)


def environment(url: str | None) -> dict[str, str]:
    """The environment of agents: ours, and where the gate is."""
    return {**os.environ, "AGENTGATE_URL": url} if url else dict(os.environ)


def make_supervisor(
    files: Sequence[Path],
    environ: Mapping[str, str],
    *,
    as_json: bool,
    options: SupervisorOptions | None = None,
) -> Supervisor:
    """A supervisor that reports to people or machines."""
    return Supervisor(
        files,
        environ=environ,
        tell=tell_machines if as_json else tell_people,
        show=_shower(as_json=as_json),
        draw=SystemChance().draw,
        options=options,
    )


async def first_of(*events: asyncio.Event) -> None:
    """Wait until any of them is set."""
    async with asyncio.TaskGroup() as group:
        waits = [group.create_task(event.wait()) for event in events]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def tell_people(event: Event) -> None:
    """One line an event; a crash with its last words."""
    say(f"{event.agent}: {event.what.replace('_', ' ')}" + (f" ({event.detail})" if event.detail else ""))
    if event.what in ("crashed", "gave_up") and event.more.get("exit_code") != EXIT_REFUSED:  # that is one line
        for line in event.more.get("stderr", [])[-TAIL_SHOWN:]:
            say(f"    {line}")


def tell_machines(event: Event) -> None:
    """One line of JSON an event."""
    line: dict[str, Any] = {"agent": event.agent, "event": event.what, "detail": event.detail, **event.more}
    sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
    sys.stdout.flush()


def _shower(*, as_json: bool) -> Callable[[str, Stream, str], None]:
    def show(agent: str, stream: Stream, line: str) -> None:
        out = sys.stdout if stream == "stdout" and not as_json else sys.stderr
        out.write(f"{shown(agent)} | {line}\n")
        out.flush()

    return show
