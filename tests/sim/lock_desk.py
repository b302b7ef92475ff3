"""An agent whose units ask for locks, by hand, at a real gate on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.locks import LockOptions
from agentgate.model import Outcome, Skill
from tests.sim.wire_peer import Invoked, WirePeer, gate

PAY = Skill(task_type="pay", timeout_s=60.0, rests=True)
LOOK = Skill(task_type="look", effect="read")
SKILLS = (PAY, LOOK)


class Desk:
    """An agent with units at work, each of which may ask for locks."""

    def __init__(self, platform: Platform, name: str = "bank", *, concurrency: int = 32) -> None:
        self.platform = platform
        self.peer = WirePeer(platform, name, skills=SKILLS, concurrency=concurrency).connect()
        self.client = WirePeer(platform, "shop").connect()
        self.orders = 0
        self.calls: list[asyncio.Future[Outcome]] = []

    async def unit(self, **options: Any) -> Invoked:
        """A new unit, by default of a write with a minute's time."""
        self.orders += 1
        options = {"timeout_ms": 60_000, **options}
        self.calls.append(self.client.call(self.peer.name, "pay", f"o{self.orders}-{self.peer.instance}", **options))
        return await self.peer.next()

    def lock(self, unit: Invoked, *names: str, **options: Any) -> asyncio.Future[Outcome]:
        return self.peer.lock(*names, token=unit.params.token, **options)


@asynccontextmanager
async def desk(**locks: Any) -> AsyncIterator[Desk]:
    async with gate(settings=Settings(locks=LockOptions(**locks))) as platform:
        yield Desk(platform)


def held(outcome: asyncio.Future[Outcome]) -> bool:
    return outcome.done() and outcome.result().ok


def locks_in_use(platform: Platform) -> dict[str, tuple[int, int]]:
    """How many have each lock, and how many wait for it."""
    return {name: (len(lock.has), len(lock.line)) for name, lock in platform.gateway.policies.locks.standing().items()}


async def moment() -> None:
    await asyncio.sleep(0.05)
