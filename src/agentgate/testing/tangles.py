"""Orders that close circles of waits on purpose, for worlds in which every agent has few slots and holds them.

Each tangle is one that a different part of the platform has to find: the last call of a ring is refused where it would
begin to wait, and so is the last of several orders that meet head-on; a circle that closes because an instance is lost
is closed by nobody's call, and only the timer finds it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from agentgate.testing.cast import Role
from agentgate.testing.clients import ScriptedClient
from agentgate.testing.processes import AgentProcess
from agentgate.testing.witness import Witness

EVERY_S: Final = 4.0  # mean time between two tangles
TAKES_S: Final = 0.3  # for orders that meet to have begun, each at its agent, before one calls on
HOLDS_S: Final = 20.0  # by the order whose process is lost
DOWN_S: Final = 15.0  # longer than it takes to give it up and to find what that has closed

Spawn = Callable[[Coroutine[Any, Any, Any]], object]


class Tangler:
    """Makes them at random; `spawn` runs what may outlast it."""

    def __init__(
        self,
        client: ScriptedClient,
        cast: Mapping[str, Role],
        agents: list[AgentProcess],
        *,
        witness: Witness,
        draws: random.Random,
        spawn: Spawn,
    ) -> None:
        self._client = client
        self._agents = agents
        self._single = [name for name, role in cast.items() if role.instances == 1]
        self._double = [name for name, role in cast.items() if role.instances > 1]
        self._witness = witness
        self._draws = draws
        self._spawn = spawn
        self._made = 0

    async def run(self) -> None:
        """Tangle after tangle, until cancelled."""
        while True:
            await asyncio.sleep(self._draws.expovariate(1 / EVERY_S))
            self._made += 1
            await self._draws.choice((self._ring, self._meeting, self._shrinking))()

    async def _ring(self) -> None:
        """One order that comes back to where it has begun."""
        names = self._some()
        self._order(names[0], *names[1:], names[0])

    async def _meeting(self) -> None:
        """Everybody works, and wants the next one."""
        names = self._some()
        for place, name in enumerate(names):
            self._order(name, names[(place + 1) % len(names)])

    async def _shrinking(self) -> None:
        """Two want each other's slot, of which one is not the last of its kind; then the other one is lost."""
        one, other = self._draws.choice(self._single), self._draws.choice(self._double)
        held = self._order(other, takes_s=HOLDS_S)
        await asyncio.sleep(TAKES_S)
        self._order(one, other)
        self._order(other, one)
        await asyncio.sleep(4 * TAKES_S)
        holding = [run.instance for run in self._witness.live_runs.values() if run.key.shown.split(":")[2] == held]
        for process in self._agents:
            if process.life is not None and process.life.instance in holding:
                process.kill(DOWN_S)

    def _some(self) -> list[str]:
        return self._draws.sample(self._single, self._draws.randint(1, len(self._single)))

    def _order(self, target: str, *way: str, takes_s: float = TAKES_S) -> str:
        """Place an order; its business key."""
        business_key = f"tangle{self._made}-{target}{len(way)}{takes_s:g}"
        self._spawn(self._client.send(target, business_key, way, takes_s))
        return business_key
