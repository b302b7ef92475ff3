"""A drill with real processes: a gate on SQLite and supervised agents, in a folder of their own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec

from agentgate import Gate
from agentgate.chaos.drill import Found, Run
from agentgate.chaos.figures import Totals
from agentgate.cli.demo.crew import free_port, ready, started
from agentgate.cli.demo.gauges import Gauges
from agentgate.model import Finding

PREFIX: Final = "agentgate-drill-"


class LiveScene:
    """A gate that listens on the loopback."""

    def __init__(self, gate: Gate, gauges: Gauges) -> None:
        self.gate = gate
        self._gauges = gauges

    async def totals(self) -> Totals:
        """Read from `/metrics`."""
        counts = await self._gauges.counts()
        return Totals(
            circles=counts.deadlocks_found,
            circles_resolved=counts.deadlocks_resolved,
            longest_wait_s=counts.longest_wait_ms / 1000,
        )

    async def findings(self) -> list[Finding]:
        """Read from `/v1/findings`."""
        return msgspec.convert(await self._gauges.findings(), list[Finding])


@contextlib.asynccontextmanager
async def live(found: Found, run: Run) -> AsyncIterator[LiveScene]:
    """The scene of one run; leaving it stops every process and leaves no file."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder, port = Path(name), free_port()
        url, gauges = f"http://127.0.0.1:{port}", Gauges(port)
        environment = environment_of(found, run, url)
        serve = ["serve", "--port", str(port), "--store", f"sqlite:{folder / 'gate.sqlite'}"]
        agents = ["run", *map(str, found.agent_files())]
        async with (
            started("gate", serve, folder, environment) as serving,
            started("agents", agents, folder, environment) as running,
        ):
            await ready([serving, running], gauges, len(found.drill.agents))
            async with Gate(url, name="drill") as gate:
                yield LiveScene(gate, gauges)


def environment_of(found: Found, run: Run, url: str) -> dict[str, str]:
    """What the processes of this run are given: the drill's settings, and none of those that this process has."""
    given = found.drill.settings.get(run, {})
    settings = {f"AGENTGATE__{name.replace('.', '__').upper()}": str(value) for name, value in given.items()}
    others = {name: value for name, value in os.environ.items() if not name.startswith("AGENTGATE_")}
    return {**others, **settings, "AGENTGATE_URL": url}
