"""Agents that do what a test says, around a gate that has to be empty of waits in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context
from agentgate.config import Settings
from agentgate.core.signals import SignalOptions
from agentgate.gateway.gateway import Gateway
from agentgate.testing import LocalGate, local_gate

Work = Callable[[Context], Awaitable[Any]]


def agent_of(name: str, concurrency: int = 8, **work: Work) -> Agent:
    """An agent with these handlers, which get nothing but their context; `review` promises `finished`."""
    agent = Agent(name, concurrency=concurrency)

    def add(task_type: str, do: Work) -> None:
        @agent.handles(task_type, promises=["finished"] if task_type == "review" else [])
        async def handle(payload: Any, ctx: Context) -> Any:
            return await do(ctx)

    for task_type, do in work.items():
        add(task_type, do)
    return agent


@asynccontextmanager
async def gate_of(*agents: Agent, **options: Any) -> AsyncIterator[LocalGate]:
    """A gate with these agents; in the end nothing of any wait or promise is left in it."""
    async with local_gate(*agents, settings=Settings(signals=SignalOptions(**options))) as gate:
        yield gate
        await asyncio.sleep(60)
        assert left_over(gate.platform.gateway) == [0, 0, 0, 0, 0, 0]


def left_over(gateway: Gateway) -> list[int]:
    book = gateway.signals.book
    promises, waits = book._promises, book._waits  # noqa: SLF001 - all of it
    declared, graph = gateway.awaiting.open_waits(), gateway.policies.graph
    return [book.waiting, len(promises), len(waits), len(declared), len(gateway.resting), len(graph)]


async def refused(awaited: Awaitable[Any]) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        await awaited
    return failed.value


def now() -> float:
    return asyncio.get_running_loop().time()


def resting_in(gate: LocalGate) -> int:
    return len(gate.platform.gateway.resting)
