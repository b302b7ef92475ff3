"""Simulated processes and their supervisors: agents and the gate start, are paused or killed, and start again.

A killed process does nothing more: its tasks are cancelled, nothing it still tries leaves it, and its store answers
nobody. What it sent before is under way; what it committed stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from agentgate.app import Platform
from agentgate.errors import LinkDown, StoreError
from agentgate.model import Card
from agentgate.model.link import Welcome
from agentgate.sdk.agent import Agent
from agentgate.sdk.greeting import Identity
from agentgate.sdk.host import AgentHost
from agentgate.sdk.link import Link
from agentgate.testing.cast import Role
from agentgate.testing.connection import AgentEnd, Network
from agentgate.testing.script import Life, scripted_agent
from agentgate.testing.witness import Witness

RESTART_S = (0.1, 2.0)  # what a supervisor takes to start a process again


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What every simulated process finds around it."""

    network: Network
    witness: Witness
    draws: random.Random
    targets: Sequence[str]  # agents that may be called
    fault_share: Callable[[], float]  # of the units, now


def _card(agent: Agent, *, rests: bool) -> Card:
    """What the agent declares; there are no threads here, so an agent that would have some only says so."""
    card = agent.card()
    skills = tuple(msgspec.structs.replace(skill, rests=rests) for skill in card.skills)
    return msgspec.structs.replace(card, skills=skills)


class _WatchedHost(AgentHost):
    """Counts the connections of its process."""

    life: Life

    def link_up(self, welcome: Welcome) -> None:
        """Connected, for the first time or again."""
        self.life.links += 1
        super().link_up(welcome)


class AgentProcess:
    """An instance of a scripted agent: when it ends, a new one takes its place."""

    def __init__(self, name: str, number: int, role: Role, surroundings: Surroundings) -> None:
        self.name = name
        self.life: Life | None = None
        self._number = number
        self._role = role
        self._around = surroundings
        self._witness = surroundings.witness
        self._draws = surroundings.draws
        self._lives = 0
        self._link: Link | None = None
        self._host: AgentHost | None = None
        self._stays_down_s = 0.0
        self._connection: AgentEnd | None = None
        self._task: asyncio.Task[None] | None = None
        self._awake = asyncio.Event()
        self._awake.set()

    @property
    def in_hand(self) -> tuple[int, int]:
        """Handlers that run, and answers that the gate has not acknowledged."""
        return self._link.in_hand if self._link is not None else (0, 0)

    @property
    def sound_link(self) -> AgentEnd | None:
        """Its connection, if it is welcome at the gate and nothing is lost or held up on it."""
        connection = self._connection
        if connection is None or self.life is None or self._host is None or not self._host.is_up:
            return None
        return connection if self._awake.is_set() and connection.is_sound else None

    async def run(self) -> None:
        """Life after life, until cancelled."""
        async with asyncio.TaskGroup() as lives:
            while True:
                self._stays_down_s = 0.0
                self._task = lives.create_task(self._live())
                await asyncio.wait({self._task})
                await asyncio.sleep(self._stays_down_s or self._draws.uniform(*RESTART_S))

    def kill(self, stays_down_s: float = 0.0) -> None:
        """The process is gone, in this very moment; its supervisor is as quick as ever, or takes so long."""
        self._stays_down_s = stays_down_s
        if self.life is None or self._task is None:
            return
        self._witness.log(self.life.instance, "KILLED")
        self.life.dead = True
        self.life = None
        self._awake.set()
        if self._connection is not None:
            self._connection.agent_died()
        self._task.cancel()

    async def pause(self, pause_s: float) -> None:
        """The process stands still: nothing leaves it and nothing reaches it."""
        life = self.life
        if life is None:
            return
        self._witness.log(life.instance, f"PAUSED for {pause_s:g} s")
        self._awake.clear()
        if self._connection is not None:
            self._connection.hold()
        try:
            await asyncio.sleep(pause_s)
        finally:
            self._awake.set()
            if self._connection is not None and self.life is life:
                self._connection.release()

    async def _live(self) -> None:
        self._lives += 1
        life = Life(
            agent=self.name,
            instance=f"{self.name}-{self._number}.{self._lives}",
            draws=random.Random(self._draws.random()),
            witness=self._witness,
            targets=self._around.targets,
            fault_share=self._around.fault_share,
        )
        life.kill = lambda: self.kill() if self.life is life else None
        self.life = life
        agent = scripted_agent(life, self._role.concurrency)
        card = _card(agent, rests=self._role.rests)
        identity = Identity(agent=agent.name, instance=life.instance, card=card)
        link = self._link = Link(lambda: self._connect(life), identity, draw=life.draws.random)
        host = self._host = _WatchedHost(agent, link)
        host.life = life
        try:
            async with host:
                try:
                    await link.run()
                except LinkDown as refusal:
                    self._witness.fail(0, f"{life.instance} was refused for good: {refusal}")
            self._witness.log(life.instance, "left in good order")
        finally:
            life.dead = True

    async def _connect(self, life: Life) -> AgentEnd:
        await self._awake.wait()
        if life.dead:
            raise asyncio.CancelledError
        self._connection = await self._around.network.dial(self.name, life.instance)
        return self._connection


class GateProcess:
    """The gate and its supervisor. `make` builds a platform on the same store, and returns how to cut it off."""

    def __init__(
        self,
        make: Callable[[], tuple[Platform, Callable[[], None]]],
        *,
        network: Network,
        witness: Witness,
        draws: random.Random,
        on_start: Callable[[], None],
    ) -> None:
        self.platform: Platform | None = None
        self.up = asyncio.Event()
        self.kills = 0
        self._make = make
        self._network = network
        self._witness = witness
        self._draws = draws
        self._on_start = on_start
        self._cut_off: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Life after life, until cancelled; then it stops in good order."""
        async with asyncio.TaskGroup() as lives:
            while True:
                self._task = lives.create_task(self._live())
                await asyncio.wait({self._task})
                await asyncio.sleep(self._draws.uniform(*RESTART_S))

    def kill(self) -> None:
        """The process is gone, in this very moment."""
        if self.platform is None or self._task is None:
            return
        self._witness.log("gate", "KILLED")
        self.kills += 1
        self._cut_off()
        self.platform = None
        self.up.clear()
        self._network.gate_died()
        self._task.cancel()

    async def _live(self) -> None:
        platform, self._cut_off = self._make()
        with contextlib.suppress(StoreError):  # a store that fails at the start: the supervisor tries again
            async with platform:
                self._witness.log("gate", "started")
                self.platform = platform
                self._on_start()
                self._network.listen(platform.gateway.connect)
                self.up.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    if self.platform is platform:
                        self.platform = None
                        self._network.gate_died()
