"""Calls that are begun and awaited later, the first of several, and handlers in threads, over real links."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context, SyncContext
from agentgate.testing import LocalGate, local_gate
from tests.sim.news_kit import agent_of, gate_of, now, resting_in
from tests.sim.wire_peer import play


def test_the_first_to_end_wins_and_the_others_are_cancelled() -> None:
    """4.4 `first`: a call, a handle and a wait; the winner's value comes at its time, the gate forgets the rest."""
    told: list[str] = []

    async def race(ctx: Context) -> list[Any]:
        slow = ctx.start("order", "slow", "s1")
        gateway = gates[0].platform.gateway
        looks = asyncio.get_running_loop().call_later(0.5, lambda: seen.extend(gateway.awaiting.open_waits()))
        value = await ctx.first(ctx.call("order", "fast", "f1"), slow, ctx.wait_for("never"))
        looks.cancel()
        return [value, now(), slow.done, gateway.awaiting.open_waits(), gateway.signals.book.waiting]

    async def slow(ctx: Context) -> None:
        try:
            await asyncio.sleep(5)
        finally:
            told.append("slow ended")

    async def fast(ctx: Context) -> str:
        await asyncio.sleep(1)
        return "fast"

    gates: list[LocalGate] = []
    seen: list[Any] = []

    async def story() -> None:
        async with gate_of(agent_of("order", race=race, slow=slow, fast=fast)) as gate:
            gates.append(gate)
            value = await gate.call("order", "race", "o1")
            assert value == ["fast", pytest.approx(1.0, abs=0.1), True, [], 1]
            assert [len(first.any_of) for first in seen] == [3]

    play(story)


def test_nothing_is_begun_when_a_handle_is_done_already() -> None:
    """4.4 `first`: the signal that is kept stays for the next who waits, and no call is made; in threads as well."""
    made: list[str] = []

    async def race(ctx: Context) -> list[Any]:
        done = ctx.start("order", "add", "k1")
        await done
        await ctx.signal("news", value="kept")
        first = await ctx.first(ctx.wait_for("news"), done, ctx.call("order", "add", "k2"))
        return [first, await ctx.wait_for("news", timeout=0)]

    async def add(ctx: Context) -> str:
        made.append(ctx.business_key)
        return ctx.business_key

    threaded = Agent("thread")

    @threaded.handles("race")
    def race_in_thread(payload: Any, ctx: SyncContext) -> list[Any]:
        done = ctx.start("order", "add", "k3")
        done.result()
        slow = ctx.start("order", "slow", "k4")
        return [ctx.first(slow, done)]

    async def slow(ctx: Context) -> None:
        await asyncio.sleep(30)

    async def story() -> None:
        async with local_gate(agent_of("order", race=race, add=add, slow=slow), threaded) as gate:
            assert await gate.call("order", "race", "o1") == ["k1", "kept"]
            assert await gate.call("thread", "race", "o2") == ["k3"]
            assert made == ["k1", "k3"]

    asyncio.run(story())


def test_a_handle_is_waited_for_only_while_somebody_does() -> None:
    """4.4 `start`: no wait until the handle is awaited, none after a time-out of one's own, one again later."""

    async def begin(ctx: Context) -> list[Any]:
        awaiting = gates[0].platform.gateway.awaiting
        handle = ctx.start("order", "slow", "s1", returns=str)
        await asyncio.sleep(0.5)
        seen = [len(awaiting.open_waits())]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await handle
        await asyncio.sleep(0.1)
        seen.append(len(awaiting.open_waits()))
        asyncio.get_running_loop().call_later(0.5, lambda: seen.append(len(awaiting.open_waits())))
        return [await handle, await handle, await ctx.first(handle), seen]

    async def slow(ctx: Context) -> str:
        await asyncio.sleep(3)
        return "slow"

    gates: list[LocalGate] = []

    async def story() -> None:
        async with gate_of(agent_of("order", begin=begin, slow=slow)) as gate:
            gates.append(gate)
            assert await gate.call("order", "begin", "o1") == ["slow", "slow", "slow", [0, 0, 1]]

    play(story)


def test_what_was_started_holds_nothing_until_it_is_awaited() -> None:
    """4.3, 4.4: the unit works on and keeps its place; with `await` or `first` it rests, once for all of them."""

    async def begin(ctx: Context) -> list[int]:
        gate = gates[0]
        slow, news = ctx.start("stock", "slow", "s1"), ctx.wait_for("never").start()
        await asyncio.sleep(0.5)
        seen = [resting_in(gate)]
        asyncio.get_running_loop().call_later(0.5, lambda: seen.append(resting_in(gate)))
        await ctx.first(slow, news)
        return [*seen, resting_in(gate)]

    async def slow(ctx: Context) -> None:
        await asyncio.sleep(3)

    gates: list[LocalGate] = []

    async def story() -> None:
        async with gate_of(agent_of("order", begin=begin), agent_of("stock", slow=slow)) as gate:
            gates.append(gate)
            assert await gate.call("order", "begin", "o1") == [0, 1, 0]

    play(story)


def test_calls_are_awaited_together_as_ever() -> None:
    """EXPERIENCE: what `ctx.call` returns is a coroutine for whatever takes one."""

    async def gather(ctx: Context) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.call("order", "add", f"{n}", n, returns=int)) for n in range(3)]
        values = [task.result() for task in tasks]
        values += await asyncio.gather(*(ctx.call("order", "add", f"{n}", n) for n in range(3)))
        return [*values, await asyncio.wait_for(ctx.call("order", "add", "7"), 5)]

    async def add(ctx: Context) -> int:
        return int(ctx.business_key) + 1

    async def story() -> None:
        async with gate_of(agent_of("order", gather=gather, add=add)) as gate:
            assert await gate.call("order", "gather", "o1") == [1, 2, 3, 1, 2, 3, 8]

    play(story)


def test_sync_handlers_have_the_same_names() -> None:
    """EXPERIENCE: `wait_for`, `signal`, `start` and `first`, blocking their thread; waits end in `needs_human`."""
    agent = Agent("order")

    @agent.handles("wait")
    def wait(payload: Any, ctx: SyncContext) -> list[Any]:
        handle = ctx.start("order", "add", "k1", 1, returns=int)
        other = ctx.start("order", "add", "k2", 2, returns=int)
        values: list[Any] = [handle.result(), ctx.first(other), handle.result(), handle.done]
        ctx.start("order", "slow", "k3")
        ctx.signal("kept", value="news")
        values += [ctx.wait_for("kept", returns=str), ctx.wait_for("sent", from_agent="order", about="o2")]
        with pytest.raises(CallFailed) as failed:
            ctx.wait_for("never", timeout=0.05)
        return [*values, failed.value.code]

    @agent.handles("add")
    async def add(payload: int) -> int:
        return payload + 1

    @agent.handles("slow")
    async def slow(payload: Any) -> None:
        await asyncio.sleep(0.5)

    @agent.handles("send")
    async def send(payload: Any, ctx: Context) -> None:
        await ctx.signal("sent", value=7)

    async def story() -> None:
        async with local_gate(agent) as gate:
            waiting = asyncio.get_running_loop().create_task(gate.call("order", "wait", "o1"))
            await gate.call("order", "send", "o2")
            assert await waiting == [2, 3, 2, True, "news", 7, "needs_human"]

    asyncio.run(story())
