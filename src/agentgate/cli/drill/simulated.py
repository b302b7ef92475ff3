"""A drill in virtual time: the real path of a call, the drill's own agents, no sockets; minutes pass in a second."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from agentgate import Agent
from agentgate.chaos.drill import Found, Run
from agentgate.chaos.figures import Totals
from agentgate.config import Given, Settings, load
from agentgate.model import DEFAULT_TENANT, Finding
from agentgate.testing import LocalGate, local_gate


class SimulatedScene:
    """A gate in this process."""

    def __init__(self, gate: LocalGate) -> None:
        self.gate = gate

    async def totals(self) -> Totals:
        """Read where `/metrics` reads."""
        deadlocks = self.gate.platform.gateway.waits.deadlocks
        return Totals(circles=deadlocks.found, circles_resolved=deadlocks.resolved, longest_wait_s=deadlocks.wait_s_max)

    async def findings(self) -> list[Finding]:
        """Read where `/v1/findings` reads."""
        return self.gate.platform.gateway.findings.of(DEFAULT_TENANT)


@contextlib.asynccontextmanager
async def simulated(found: Found, run: Run, seed: int) -> AsyncIterator[SimulatedScene]:
    """The scene of one run, on the loop that this is called on."""
    async with local_gate(
        *load_agents(found.agent_files()), name="drill", settings=settings_of(found, run), seed=seed
    ) as gate:
        yield SimulatedScene(gate)


def settings_of(found: Found, run: Run) -> Settings:
    """The gate's settings in this run; those that the drill does not name are the defaults."""
    given = found.drill.settings.get(run, {})
    return load(more=[Given(name, value, f"drill {found.name}") for name, value in given.items()]).settings


def load_agents(files: Sequence[Path]) -> list[Agent]:
    """The `agent` of each file, made anew: what an agent remembers is of one run."""
    agents = []
    for file in files:
        spec = importlib.util.spec_from_file_location(f"agentgate_drill_{file.stem}", file)
        assert spec is not None, "a Python file has a loader"
        assert spec.loader is not None, "a Python file has a loader"
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        agents.append(module.agent)
    return agents
