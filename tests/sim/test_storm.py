"""Hundreds of agents at once, with real SDK links on virtual time (A5)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from agentgate import Agent, Context, Gate
from agentgate.adapters.memory.store import MemoryStore
from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.admission import AdmissionOptions
from agentgate.model import Card
from agentgate.sdk.greeting import Identity
from agentgate.sdk.host import AgentHost
from agentgate.sdk.link import Link
from agentgate.testing.connection import Network
from tests.sim.wire_peer import gate, play

TEAM = 200
SECOND_S = 1.0


class Arrivals:
    """When each instance joined."""

    def __init__(self, platform: Platform) -> None:
        self.times: dict[str, float] = {}
        platform.directory.listen(self)

    def instance_joined(self, agent: str, instance: str, card: Card) -> None:
        self.times.setdefault(instance, asyncio.get_running_loop().time())

    def instance_away(self, agent: str, instance: str) -> None:
        pass

    def instance_draining(self, agent: str, instance: str) -> None:
        pass

    def instance_lost(self, agent: str, instance: str) -> None:
        pass

    def most_in_a_second(self, only: Callable[[str], bool] = lambda _: True) -> int:
        times = sorted(time for name, time in self.times.items() if only(name))
        return max(sum(began <= time < began + SECOND_S for time in times) for began in times)


@asynccontextmanager
async def team(network: Network, names: list[str], agent_of: Callable[[str], Agent]) -> AsyncIterator[None]:
    """Agents with their links, all started in the same instant."""
    failed: Exception | None = None
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        links = []
        for name in names:
            agent = agent_of(name)
            identity = Identity(agent=name, instance=f"{name}-1", card=agent.card())
            link = Link(partial(network.dial, name), identity, draw=network.draws.random)
            await stack.enter_async_context(AgentHost(agent, link))
            links.append(link)
        running = [group.create_task(link.run()) for link in links]
        try:
            yield
        except Exception as error:  # noqa: BLE001 - any: it is raised below, or each task group would wrap it again
            failed = error
        for task in running:
            task.cancel()
    if failed is not None:
        raise failed


def idle(name: str) -> Agent:
    agent = Agent(name)

    @agent.handles("look", effect="read")
    async def look(payload: None, ctx: Context) -> str:
        return "seen"

    return agent


@pytest.mark.parametrize(("limit", "most"), [(AdmissionOptions(), 150), (AdmissionOptions(hello_per_s=None), TEAM)])
def test_a_team_that_starts_at_once_is_in_within_ten_seconds(limit: AdmissionOptions, most: int) -> None:
    """A5: 200 agents in one instant are registered in 10 s, and the directory takes no more in any second than its
    limit allows; without the limit all of them come in the same moment.
    """

    async def story() -> None:
        async with gate(settings=replace(Settings(), admission=limit)) as platform:
            network = Network(random.Random(7))
            network.listen(platform.gateway.connect)
            arrivals = Arrivals(platform)
            names = [f"agent_{number}" for number in range(TEAM)]
            async with team(network, names, idle):
                await asyncio.sleep(10)
                assert len(arrivals.times) == TEAM
                assert max(arrivals.times.values()) < 5
                counters = platform.gateway.counters
                assert counters.registrations == TEAM
                assert counters.registrations_put_off < TEAM
                assert arrivals.most_in_a_second() <= most
                assert (arrivals.most_in_a_second() == TEAM) == (limit.hello_per_s is None)

    play(story)


def test_a_restarted_gate_loses_nothing_to_the_limit() -> None:
    """A5, G1, C4: 200 agents that run a unit each come back to a restarted gate beside 100 that start for the first
    time. The limit would take longer for them than units are kept; all rejoin all the same before anything is given up,
    every caller gets its answer, nothing runs twice, and those that are new are held to the limit.
    """
    runs: list[str] = []
    may_end = asyncio.Event()

    def at_work(name: str) -> Agent:
        agent = Agent(name)

        @agent.handles("pay")
        async def pay(payload: None, ctx: Context) -> str:
            runs.append(name)
            await may_end.wait()
            return name

        return agent

    async def story() -> None:
        store, network = MemoryStore(), Network(random.Random(7))
        old, new = ([f"{kind}_{number}" for number in range(count)] for kind, count in (("old", TEAM), ("new", 100)))
        async with AsyncExitStack() as stack:
            async with gate(store) as platform:
                network.listen(platform.gateway.connect)
                await stack.enter_async_context(team(network, old, at_work))
                shop = await stack.enter_async_context(
                    Gate(
                        name="shop", connect=lambda: network.dial("shop"), draw=network.draws.random, instance="shop-1"
                    )
                )
                await asyncio.sleep(10)
                calls = [asyncio.ensure_future(shop.call(name, "pay", "o1", timeout=60)) for name in old]
                await asyncio.sleep(2)
                assert len(runs) == TEAM
                network.gate_died()
            await asyncio.sleep(1)
            tight = replace(Settings(), admission=AdmissionOptions(hello_per_s=10, hello_burst=20))
            async with gate(store, seed=2, settings=tight) as platform:
                arrivals = Arrivals(platform)
                network.listen(platform.gateway.connect)
                await stack.enter_async_context(team(network, new, idle))
                await asyncio.sleep(9)
                counters = platform.gateway.counters
                assert (counters.rejoined_units, counters.lost_units) == (TEAM, 0)
                await asyncio.sleep(25)
                may_end.set()
                assert [await call for call in calls] == old
                assert (len(runs), counters.lost_units) == (TEAM, 0)
                assert len(arrivals.times) == TEAM + 100
                assert arrivals.most_in_a_second(lambda name: name.startswith("new")) <= 30
                await stack.aclose()

    play(story)
