"""A gate for tests of your own agents: the real pipeline in this process, without sockets, files or servers.

    async with local_gate(order_agent, stock_agent) as gate:
        receipt = await gate.call("order_agent", "confirm", "order_1", {"sku": "tea", "n": 2})

It works on the event loop you are on (`asyncio.run`, pytest-asyncio, anyio on asyncio), and in virtual time
(`run_virtual`), where time-outs and back-offs cost nothing. `faults` makes agents slow or failing, to see what your
other agents make of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import structlog

from agentgate.adapters.clock import SystemClock
from agentgate.adapters.memory import MemorySpanStore, MemoryStore
from agentgate.app import Platform, Ports, build
from agentgate.config import Settings
from agentgate.errors import LinkDown
from agentgate.model import Span, problem
from agentgate.model.link import Answer, InvokeParams, StopKind, Welcome
from agentgate.ports.clock import Clock
from agentgate.sdk.agent import Agent
from agentgate.sdk.gate import Gate
from agentgate.sdk.greeting import Identity
from agentgate.sdk.host import AgentHost
from agentgate.sdk.link import Link
from agentgate.testing.connection import AgentEnd, Network, Weather
from agentgate.testing.loop import VirtualLoop
from agentgate.testing.ports import SeededChance, VirtualClock

AT_ONCE = Weather(latency_s=(0.0, 0.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentFault:
    """What is wrong with an agent: every call begins `delay_s` later, and `fail_share` of them (0 to 1) fail."""

    delay_s: float = 0.0
    fail_share: float = 0.0

    def __post_init__(self) -> None:
        if self.delay_s < 0 or not 0.0 <= self.fail_share <= 1.0:
            raise ValueError("delay_s is at least 0 seconds, and fail_share is between 0 and 1")


class LocalGate(Gate):
    """A `Gate` that is connected to a gate in this process; `platform` is that gate, for tests that look inside."""

    platform: Platform

    async def spans(self, key: str) -> list[Span]:
        """What a key, a business key or a trace id has left behind, in order of start."""
        return await self.platform.spans.chain(key)


@contextlib.asynccontextmanager
async def local_gate(
    *agents: Agent,
    name: str = "client",
    settings: Settings | None = None,
    faults: Mapping[str, AgentFault] | None = None,
    seed: int = 0,
) -> AsyncIterator[LocalGate]:
    """A gate with these agents connected, as a client called `name` sees it.

    `settings`: as for a real gate (`agentgate.config.Settings`); the store is always in memory. `faults`: by the
    agent's name. `seed`: for what is drawn by chance (jitter, faults), so that a test runs the same way every time.
    """
    wrong = sorted(set(faults or ()) - {agent.name for agent in agents})
    if wrong:
        raise ValueError(f"faults for agents that are not there: {', '.join(wrong)}")
    _keep_logs_to_warnings()
    draws = random.Random(seed)
    network = Network(random.Random(draws.random()))
    network.weather = AT_ONCE
    ports = Ports(clock=_clock(), chance=SeededChance(draws), store=MemoryStore(), spans=MemorySpanStore())
    platform = build(settings or Settings(), ports)
    failed: Exception | None = None
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(platform)
        network.listen(platform.gateway.connect)
        for agent in agents:
            fault = (faults or {}).get(agent.name, AgentFault())
            await stack.enter_async_context(_connected(agent, network, fault, random.Random(draws.random())))
        gate = LocalGate(name=name, connect=lambda: network.dial(name), draw=draws.random, instance=f"{name}-1")
        gate.platform = platform
        await stack.enter_async_context(gate)
        try:
            yield gate
        except Exception as error:  # noqa: BLE001 - any: it is raised below, once everything has stopped in good order
            failed = error
    if failed is not None:
        raise failed  # as it was: the task groups inside would wrap it


def _keep_logs_to_warnings() -> None:
    """What a gate tells its operators does not belong between the results of a test, unless it was set up so."""
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )


def _clock() -> Clock:
    """The loop's time; wall time is the real one unless the loop's is not."""
    loop = asyncio.get_running_loop()
    return VirtualClock(loop.time) if isinstance(loop, VirtualLoop) else SystemClock()


@contextlib.asynccontextmanager
async def _connected(agent: Agent, network: Network, fault: AgentFault, draws: random.Random) -> AsyncIterator[None]:
    """The agent at work, from its welcome on; its handlers are cancelled at the end."""

    async def connect() -> AgentEnd:
        return await network.dial(agent.name)

    link = Link(connect, Identity(agent=agent.name, instance=f"{agent.name}-1", card=agent.card()), draw=draws.random)
    async with _Host(agent, link, fault, draws) as host:
        running = asyncio.get_running_loop().create_task(link.run(), name=f"{agent.name}-link")
        try:
            await asyncio.wait({running, host.up}, return_when=asyncio.FIRST_COMPLETED)
            if not host.up.done():
                raise running.exception() or LinkDown(f"the gate did not take {agent.name}")
            yield
        finally:
            link.close()
            await asyncio.wait({running})


class _Host(AgentHost):
    """Runs an agent's handlers, with the faults it was given."""

    def __init__(self, agent: Agent, link: Link, fault: AgentFault, draws: random.Random) -> None:
        super().__init__(agent, link)
        self.up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._link = link
        self._fault = fault
        self._draws = draws
        self._delayed: dict[str, asyncio.TimerHandle] = {}

    def link_up(self, welcome: Welcome) -> None:
        """Connected."""
        super().link_up(welcome)
        if not self.up.done():
            self.up.set_result(None)

    def start(self, unit_id: str, params: InvokeParams, deadline: float) -> None:
        """Run the handler of this unit, late if the fault says so."""
        if not self._fault.delay_s:
            self._begin(unit_id, params, deadline)
            return
        loop = asyncio.get_running_loop()
        self._delayed[unit_id] = loop.call_later(self._fault.delay_s, self._begin, unit_id, params, deadline)

    def stop(self, unit: str, kind: StopKind, reason: str) -> None:
        """Tell a unit; one that has not begun never does."""
        delayed = self._delayed.pop(unit, None) if kind == "cancel" else None
        if delayed is None:
            super().stop(unit, kind, reason)
        else:
            delayed.cancel()
            self._link.answer(unit, Answer(error=problem("cancelled", detail="stopped before it began")))

    def _begin(self, unit_id: str, params: InvokeParams, deadline: float) -> None:
        self._delayed.pop(unit_id, None)
        if self._fault.fail_share and self._draws.random() < self._fault.fail_share:
            self._link.answer(unit_id, Answer(error=problem("handler_error", sent=True, detail="a fault of this test")))
        else:
            super().start(unit_id, params, deadline)
