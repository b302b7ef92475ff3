"""Alarms on the event loop that the gate really runs on."""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop

from agentgate import Agent, CallFailed, Context
from agentgate.directory.alarms import Alarms
from agentgate.runtime.alarm import Alarm
from agentgate.testing import local_gate


def test_alarms_that_are_due_now_ring_on_uvloop() -> None:
    """Uvloop has another kind of handle for a time that is now; setting more alarms while it waits rings both."""

    async def ring_twice() -> list[str]:
        loop = asyncio.get_running_loop()
        rung: list[str] = []
        all_rung = asyncio.Event()

        def ring() -> None:
            rung.extend(alarms.due(loop.time()))
            if len(rung) == 2:
                all_rung.set()

        alarms = Alarms[str](ring)
        alarms.start(loop)
        alarms.set("now", loop.time())
        alarms.set("soon", loop.time() + 0.001)
        alarms.set("soon", loop.time())
        async with asyncio.timeout(5):
            await all_rung.wait()
        alarms.stop()
        return rung

    assert sorted(uvloop.run(ring_twice())) == ["now", "soon"]


def test_an_alarm_that_is_due_now_is_set_anew_on_uvloop() -> None:
    """What it was set to last holds, whatever kind of handle the loop has given for the time before."""

    async def count_rings() -> int:
        loop = asyncio.get_running_loop()
        rings: asyncio.Queue[None] = asyncio.Queue(10)
        alarm = Alarm(lambda: rings.put_nowait(None))
        for at in (loop.time(), loop.time() - 1.0, loop.time() + 60.0, None, loop.time() + 60.0, loop.time()):
            alarm.set(at)
        async with asyncio.timeout(5):
            await rings.get()
        alarm.set(loop.time())
        alarm.set(None)
        await asyncio.sleep(0.01)
        return rings.qsize()

    assert uvloop.run(count_rings()) == 0, "it has rung once"


def test_waits_and_locks_without_patience_end_on_uvloop() -> None:
    """4.3, 4.4: several looks with time-out 0, and others meanwhile: each is answered, and the gate goes on."""

    async def look(ctx: Context, name: str) -> str:
        try:
            await ctx.wait_for(name, timeout=0)
        except CallFailed as failed:
            return failed.code
        return "heard"

    async def take(ctx: Context) -> str:
        try:
            async with ctx.lock("stock", timeout=0):
                return "held"
        except CallFailed as failed:
            return failed.code

    async def story() -> Any:
        desk = Agent("desk")

        @desk.handles("look")
        async def looks(payload: Any, ctx: Context) -> list[str]:
            return await asyncio.gather(*(look(ctx, f"news_{number}") for number in range(5)))

        @desk.handles("take")
        async def takes(payload: Any, ctx: Context) -> list[str]:
            async with ctx.lock("stock"):
                seen = await ctx.call("desk", "try", ctx.business_key)
            return [*seen, await take(ctx)]

        @desk.handles("try")
        async def tries(payload: Any, ctx: Context) -> list[str]:
            return await asyncio.gather(*(take(ctx) for _ in range(5)))

        async with local_gate(desk) as gate, asyncio.timeout(10):
            return await asyncio.gather(gate.call("desk", "look", "o1"), gate.call("desk", "take", "o2"))

    looked, taken = uvloop.run(story())
    assert looked == ["needs_human"] * 5
    assert len(taken) == 6
    assert taken[-1] == "held"
    assert "held" not in taken[:-1]
