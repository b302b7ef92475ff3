"""`agentgate dev`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from agentgate.cli.options import ConfigFile, Host, LogLevel, Port, Store
from agentgate.cli.output import say
from agentgate.cli.run import Files, check_files, make_supervisor
from agentgate.cli.signals import stop_signal
from agentgate.cli.supervisor import Supervisor, SupervisorOptions

GRACE_S: Final = 5.0  # somebody waits for the new code


def dev(
    files: Files,
    config: ConfigFile = None,
    host: Host = None,
    port: Port = None,
    store: Store = None,
    log_level: LogLevel = "warning",
) -> None:
    """Run a gate and agents; restart agents when files change.

    A change to an agent's own file restarts that agent, a change to a Python file beside it restarts all.

    Example: agentgate dev stock_agent.py order_agent.py
    """
    from agentgate.cli import gate

    check_files(files)
    settings = gate.read_settings(config, host, port, store)
    gate.start_logs(log_level)
    store_said = gate.store_of(settings)

    async def main() -> None:
        async with gate.open_gate(settings) as (_, server):
            say(f"agentgate {server.url}, {store_said}; Ctrl-C stops everything")
            supervisor = make_supervisor(
                files,
                {**os.environ, "AGENTGATE_URL": server.url},
                as_json=False,
                options=SupervisorOptions(grace_s=GRACE_S),
            )
            stop = stop_signal(supervisor.kill)
            async with supervisor:
                await _reload_until(stop, supervisor, files)

    gate.run_gate(main)


async def _reload_until(stop: asyncio.Event, supervisor: Supervisor, files: Sequence[Path]) -> None:
    from watchfiles import PythonFilter, awatch

    folders = {file.resolve().parent for file in files}
    async for changes in awatch(*folders, watch_filter=PythonFilter(), stop_event=stop, recursive=False):
        changed = {Path(path) for _, path in changes}
        supervisor.reload(names_to_reload(changed, supervisor))


def names_to_reload(changed: Iterable[Path], supervisor: Supervisor) -> set[str]:
    """The agents whose own files changed; all of them when it was something they may share."""
    names_by_file: dict[Path, set[str]] = {}
    for child in supervisor.children:
        names_by_file.setdefault(child.file.resolve(), set()).add(child.name)
    everybody = {child.name for child in supervisor.children}
    return set[str]().union(*(names_by_file.get(path, everybody) for path in changed))
