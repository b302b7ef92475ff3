"""Two sides that need what the other holds, give up at the same moment and come back at the same moment, for ever.

Nothing but the time-outs is at work here: the wait graph, breakers and the gate's own attempts are off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.locks import LockOptions
from agentgate.core.policy import Mode
from agentgate.core.timeout import TimeoutOptions
from agentgate.model import Skill
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

WORK_S = 1.0  # before it asks for what the other has; longer than any jitter of a frame
GIVE_S = 0.5  # what the other wants of it
PAUSE_S = 0.5  # before it is tried again
ROUNDS_MAX = 20
ENOUGH_ROUNDS = 6

OFF: dict[str, Mode] = dict.fromkeys(("wait_graph", "circuit_breaker", "retry", "abuse"), "off")
IN_STEP = Settings(timeout=TimeoutOptions(spread=0.0, explore_share=0.0), locks=LockOptions(spread=0.0))
SEEDS = range(1, 13)


def only_time_outs(settings: Settings) -> Settings:
    return Settings(timeout=settings.timeout, locks=settings.locks, mechanisms={**default_modes(), **OFF})


class Taker(WirePeer):
    """An agent that runs one unit at a time: `take` holds it until `other` has given; told to stop, it stops."""

    def __init__(self, platform: Platform, name: str, other: str, needs: Needs, skills: tuple[Skill, ...]) -> None:
        super().__init__(platform, name, skills=skills, concurrency=1 if needs is for_a_slot else 8)
        self.other = other
        self._needs = needs
        self._units: dict[str, asyncio.Task[None]] = {}

    def _take(self, message: dict[str, Any]) -> None:
        super()._take(message)
        if message.get("method") == "invoke":
            unit = self.invoked.get_nowait()
            self._units[unit.unit] = asyncio.get_running_loop().create_task(self._serve(unit))
        elif message.get("method") == "stop":
            self._units[message["params"]["unit"]].cancel()

    async def ask_other(self, unit: Invoked) -> None:
        """Have the other one give, while this unit goes on; raises `LookupError` if it does not."""
        answered = self.call(self.other, "give", effect="read", token=unit.params.token)
        call_id = next(reversed(self._calls))
        try:
            outcome = await asyncio.shield(answered)
        except asyncio.CancelledError:
            self.send(method="cancel", params={"id": call_id})
            raise
        if not outcome.ok:
            raise LookupError

    async def _serve(self, unit: Invoked) -> None:
        try:
            await self._needs(self, unit)
        except asyncio.CancelledError:
            self.answer(unit, error="cancelled")
        except LookupError:
            self.answer(unit, error="handler_error")
        else:
            self.answer(unit, "done")


Needs = Callable[[Taker, Invoked], Awaitable[None]]


async def for_a_slot(agent: Taker, unit: Invoked) -> None:
    """It holds its own slot, and needs the other's."""
    if unit.params.task_type == "give":
        await asyncio.sleep(GIVE_S)
    else:
        await asyncio.sleep(WORK_S)
        await agent.ask_other(unit)


async def for_a_lock(agent: Taker, unit: Invoked) -> None:
    """It holds its own lock, and needs work of the other that is done under the other's."""
    answered = agent.lock(agent.name, token=unit.params.token)
    lock_id = agent.last_lock
    try:
        if not (await asyncio.shield(answered)).ok:
            raise LookupError
        await for_a_slot(agent, unit)
    finally:
        agent.unlock(lock_id)


def rounds_needed(needs: Needs, settings: Settings, seed: int) -> list[int]:
    """How often each of both sides tries until it gets through; 0: never in all rounds."""
    rounds: list[int] = []
    skills = (Skill(task_type="take", effect="read"), Skill(task_type="give", effect="read"))

    async def persist(client: WirePeer, name: str) -> int:
        for number in range(1, ROUNDS_MAX + 1):
            outcome = await client.call(name, "take", effect="read", timeout_ms=60_000)
            if outcome.ok:
                return number
            await asyncio.sleep(PAUSE_S)
        return 0

    async def story() -> None:
        async with gate(seed=seed, settings=only_time_outs(settings)) as platform:
            for name, other in (("a", "b"), ("b", "a")):
                Taker(platform, name, other, needs, skills).connect()
            client = WirePeer(platform, "shop").connect()
            rounds.extend(await asyncio.gather(persist(client, "a"), persist(client, "b")))

    play(story, seconds=1_000.0)
    return rounds


@pytest.mark.parametrize("needs", [for_a_slot, for_a_lock])
def test_two_sides_with_the_same_time_out_meet_for_ever(needs: Needs) -> None:
    """What the spread is for: without it nobody gets through, however often both try."""
    assert rounds_needed(needs, IN_STEP, 1) == [0, 0]


@pytest.mark.parametrize("needs", [for_a_slot, for_a_lock])
def test_two_sides_whose_time_outs_are_spread_get_through(needs: Needs) -> None:
    """D5: whatever is drawn, one side gives up first and the other one gets what it needs, within a few rounds."""
    needed = [rounds_needed(needs, Settings(), seed) for seed in SEEDS]
    assert all(0 < number <= ENOUGH_ROUNDS for both in needed for number in both), needed
