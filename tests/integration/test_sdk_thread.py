"""The link on its own thread, in this process: many units at once, tasks and threads mixed, one answer each."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentgate import Agent, Context, Gate, SyncContext
from agentgate.errors import LinkDown
from agentgate.model import Outcome
from agentgate.sdk import clock
from agentgate.sdk.greeting import Identity
from agentgate.sdk.host import AgentHost
from agentgate.sdk.link import Link
from agentgate.sdk.thread import LinkThread
from agentgate.sdk.websocket import websocket
from tests.integration.realtime import realtime
from tests.integration.sdk_gate import ScriptedGate
from tests.integration.sdk_sockets import listening

UNITS = 300


def asking_agent() -> Agent:
    agent = Agent("a", concurrency=8)

    @agent.handles("task")
    async def task(payload: int, ctx: Context) -> int:
        ctx.progress(str(payload))
        return await ctx.call("b", "t", str(payload), payload, returns=int) + 1

    @agent.handles("thread")
    def thread(payload: int, ctx: SyncContext) -> int:
        ctx.progress(str(payload))
        return ctx.call("b", "t", str(payload), payload, returns=int) + 1

    return agent


@asynccontextmanager
async def threaded(agent: Agent, url: str) -> AsyncIterator[LinkThread]:
    identity = Identity(agent=agent.name, instance=clock.new_instance(), card=agent.card())
    thread = LinkThread(Link(websocket(url), identity, draw=clock.draw))
    async with AgentHost(agent, thread.task_port(), thread_port=thread.thread_port()) as host:
        thread.start(host)
        yield thread
        thread.close()
        await asyncio.wait({thread.ended}, timeout=10)


@realtime
async def test_every_unit_is_answered_once_and_in_order() -> None:
    """4.5: with two loops and eight handler threads, each unit has its note, call and one answer, in this order."""
    gate = ScriptedGate()
    async with listening(gate) as url, threaded(asking_agent(), url):
        await gate.hello()
        for number in range(UNITS):
            gate.invoke(f"u{number}", ("task", "thread")[number % 2], number)
        seen: dict[str, list[str]] = {}
        values: Counter[tuple[str, int]] = Counter()
        for _ in range(3 * UNITS):
            frame = await gate._next()  # noqa: SLF001 - notes, calls and answers in any order
            if frame.get("method") == "call":
                gate.settle(frame, Outcome(value=frame["params"]["payload"]))
                seen.setdefault(f"u{frame['params']['business_key']}", []).append("call")
            elif frame.get("method") == "progress":
                seen.setdefault(frame["params"]["unit"], []).append("note")
            else:
                seen.setdefault(frame["id"], []).append("answer")
                values[frame["id"], frame["result"]["value"]] += 1
        assert all(order == ["note", "call", "answer"] for order in seen.values())
        assert values == Counter({(f"u{number}", number + 1): 1 for number in range(UNITS)})


@realtime
async def test_cancelling_in_the_handlers_loop_reaches_the_gate() -> None:
    """F19 across threads: the task is cancelled, the gate is told, the outcome that comes later is dropped."""
    gate = ScriptedGate()
    async with listening(gate) as url, threaded(asking_agent(), url):
        await gate.hello()
        gate.invoke("u1", "task", 1)
        await gate.expect("progress")
        call = await gate.call()
        gate.stop("u1", "cancel")
        assert (await gate.expect("cancel"))["params"]["id"] == call["id"]
        gate.settle(call, Outcome(value=1))
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert answer.error.code == "cancelled"


@realtime
async def test_a_refusal_ends_the_thread_with_its_sentence() -> None:
    """What ends the link is known to the loop that started it."""
    gate = ScriptedGate()
    gate.refusal = {"code": -32602, "message": "not you", "data": {"code": "forbidden"}}
    async with listening(gate) as url, threaded(asking_agent(), url) as thread:
        with pytest.raises(LinkDown, match="not you"):
            await thread.ended
        with pytest.raises(LinkDown, match="has ended"):
            thread.task_port().progress("u", "note")
    await wait_for_threads()


@realtime
async def test_the_thread_ends_with_the_link() -> None:
    """A6: nothing is left running."""
    gate = ScriptedGate()
    async with listening(gate) as url:
        async with threaded(asking_agent(), url) as thread:
            await gate.hello()
        assert thread.ended.done()
    await wait_for_threads()


async def wait_for_threads() -> None:
    """Until no thread of the SDK is left."""
    for thread in threading.enumerate():
        if thread.name.startswith("agentgate"):
            await asyncio.get_running_loop().run_in_executor(None, thread.join, 10)
            assert not thread.is_alive()


@realtime
async def test_a_client_over_a_real_socket() -> None:
    """EXPERIENCE: `Gate(url)` as a program uses it."""
    gate = ScriptedGate()
    async with listening(gate) as url, Gate(url, name="shop") as client:
        calling: asyncio.Task[Any] = asyncio.get_running_loop().create_task(client.call("b", "t", "k", {"ü": "\n"}))
        await gate.hello()
        call = await gate.call()
        assert call["params"]["payload"] == {"ü": "\n"}
        gate.settle(call, Outcome(value="ß"))
        assert await calling == "ß"
    with pytest.raises(LinkDown, match="no gate answers at"):
        async with Gate(url, connect_timeout=0.3):
            pass
