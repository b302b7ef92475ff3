"""The agents of a registration storm, all started in one instant: as naive as in the stories, or with the SDK."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from multiprocessing.connection import Connection as Pipe
from typing import Final, Literal

import uvloop
from msgspec import Struct

from agentgate.model import Card, Skill
from agentgate.model.link import InvokeParams, StopKind, Welcome
from agentgate.sdk.connection import Connection
from agentgate.sdk.greeting import Identity
from agentgate.sdk.link import Link
from agentgate.sdk.websocket import websocket
from bench import messages
from bench.wire import Wire, connect_to_gate

Kind = Literal["naive", "sdk"]

NAIVE_S: Final = 1.0  # how long a naive agent waits for a welcome, and then before it tries again
LOOK_S: Final = 0.02
BEAT_S: Final = 2.0


class TeamPlan(Struct, frozen=True, kw_only=True):
    """Who starts, and how long they have."""

    kind: Kind
    agents: int
    port: int
    limit_s: float


class TeamFigures(Struct, frozen=True, kw_only=True):
    """`all_s`: after how long all were registered at once; None: not within the time they had. `most`: at one time.

    `tries`: when each connection was begun.
    """

    all_s: float | None
    most: int
    tries: list[float]


def main(plan: TeamPlan, parent: Pipe) -> None:
    """Let the storm go, and say what came of it."""
    parent.send(uvloop.run(_storm(plan)))


async def _storm(plan: TeamPlan) -> TeamFigures:
    make = NaiveAgent if plan.kind == "naive" else SdkAgent
    team = [make(f"agent-{number}", plan.port) for number in range(plan.agents)]
    began, most, all_s = time.monotonic(), 0, None
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(agent.run()) for agent in team]
        while time.monotonic() - began < plan.limit_s:
            await asyncio.sleep(LOOK_S)
            most = max(most, sum(agent.is_registered for agent in team))
            if most == plan.agents:
                all_s = time.monotonic() - began
                break
        for task in running:
            task.cancel()
    return TeamFigures(all_s=all_s, most=most, tries=[tried for agent in team for tried in agent.tries])


def _card(name: str) -> Card:
    return Card(agent=name, skills=(Skill(task_type="work"),))


class NaiveAgent:
    """Connects and says hello; without a welcome within a second it hangs up, waits a second and tries again."""

    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._port = port
        self._instance = f"{name}.{os.urandom(4).hex()}"
        self._welcome = asyncio.Event()
        self.is_registered = False
        self.tries: list[float] = []

    async def run(self) -> None:
        """For ever."""
        while True:
            self.tries.append(time.monotonic())
            with contextlib.suppress(OSError):
                await self._register()
            self.is_registered = False
            await asyncio.sleep(NAIVE_S)

    async def _register(self) -> None:
        self._welcome.clear()
        async with asyncio.timeout(NAIVE_S):
            wire = await connect_to_gate(self._port, self._on_message)
        try:
            wire.post(messages.hello(self._name, self._instance, _card(self._name)))
            wire.flush()
            async with asyncio.timeout(NAIVE_S):
                await self._welcome.wait()
            self.is_registered = True
            while not wire.closed:
                wire.post(messages.beat())
                wire.flush()
                await asyncio.sleep(BEAT_S)
        finally:
            wire.close()

    def _on_message(self, _wire: Wire, data: bytes) -> None:
        read = messages.read_seen(data)
        for seen in read if isinstance(read, list) else (read,):
            if seen.id == "hello" and seen.error is None:
                self._welcome.set()


class SdkAgent:
    """The SDK's own link, as every agent process has one."""

    def __init__(self, name: str, port: int) -> None:
        identity = Identity(agent=name, instance=f"{name}.{os.urandom(4).hex()}", card=_card(name))
        self._connect = websocket(f"http://127.0.0.1:{port}")
        self._link = Link(self._try, identity, draw=random.random, receiver=self)
        self.is_registered = False
        self.tries: list[float] = []

    async def run(self) -> None:
        """Until cancelled."""
        await self._link.run()

    async def _try(self) -> Connection:
        self.tries.append(time.monotonic())
        return await self._connect()

    # What the link tells (`Receiver`).

    def link_up(self, _welcome: Welcome) -> None:
        """Registered."""
        self.is_registered = True

    def link_down(self, _error: Exception) -> None:
        """Not, or not any more."""
        self.is_registered = False

    def runs(self, unit: str) -> bool:  # noqa: ARG002 - the shape of a `Receiver`
        """Nothing is at work here."""
        return False

    def lag_ms(self) -> float:
        """Nothing is at work here."""
        return 0.0

    def start(self, unit: str, params: InvokeParams, deadline: float) -> None:
        """Nobody calls."""

    def stop(self, unit: str, kind: StopKind, reason: str) -> None:
        """Nobody calls."""

    def drain(self, params: object) -> None:
        """Nobody asks."""
