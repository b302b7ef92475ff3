"""Makes things go wrong, at the planned moments, from outside: files in a folder that the agents look at.

The warehouse stays away until its breaker has opened, and a moment longer; then it is back, and the breaker has to
find that out by itself. One process of the notify agent kills itself (SIGKILL) with its next message just sent; the
supervisor starts another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from agentgate.cli.demo.gauges import Gauges
from agentgate.cli.demo.plan import Plan
from agentgate.cli.demo.story import Story

STOCK: Final = "stock_agent"
NOTIFY: Final = "notify_agent"

LOOK_S: Final = 0.1
OUTAGE_S_MAX: Final = 8.0  # with few orders there may not be enough of them to open a breaker
OUTAGE_TAIL_S: Final = 0.5
WATCH_S: Final = 30.0  # for what follows a fault; after it the story goes on without


class Switch:
    """One agent's larger trouble: a file of its name, with what is wrong in it."""

    def __init__(self, folder: Path, agent: str) -> None:
        self._path = folder / agent

    def turn(self, what: str) -> None:
        """From now on this is wrong."""
        self._path.write_text(what, encoding="utf-8")

    def off(self) -> None:
        """All is well again."""
        self._path.unlink(missing_ok=True)

    def is_on(self) -> bool:
        """Whether something is wrong; an agent may have switched it off itself."""
        return self._path.exists()


async def cause_trouble(plan: Plan, switches: Path, gauges: Gauges, story: Story) -> None:
    """All of it; ends when the last fault has been got over."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.TaskGroup() as faults:
        if plan.outage_at_s is not None:
            faults.create_task(_outage(began + plan.outage_at_s, Switch(switches, STOCK), gauges, story))
        if plan.death_at_s is not None:
            faults.create_task(_death(began + plan.death_at_s, Switch(switches, NOTIFY), gauges, story))


async def _outage(at: float, switch: Switch, gauges: Gauges, story: Story) -> None:
    await _sleep_until(at)
    switch.turn("down")
    story.tell("the warehouse system goes away: every reservation fails")
    opened = await _until(lambda: _is_stock(gauges, "open"), OUTAGE_S_MAX)
    if opened:
        story.tell("its breaker opens: stock is left alone, orders are back-ordered at once")
        await asyncio.sleep(OUTAGE_TAIL_S)
    switch.off()
    story.tell("the warehouse system is back")
    if opened and await _until(lambda: _is_stock(gauges, "closed"), WATCH_S):
        story.tell("trial calls went well: the breaker is closed again")


async def _death(at: float, switch: Switch, gauges: Gauges, story: Story) -> None:
    await _sleep_until(at)
    before = (await gauges.instances()).get(NOTIFY)
    switch.turn("die")

    async def dead() -> bool:
        return not switch.is_on()

    async def another() -> bool:
        return (await gauges.instances()).get(NOTIFY) not in (before, None)

    if await _until(dead, WATCH_S):
        story.tell("notify is killed (-9): its message is out, its answer is not")
    if await _until(another, WATCH_S):
        story.tell("notify is started again; its check will say what happened to that message")


async def _is_stock(gauges: Gauges, state: str) -> bool:
    states = {b["state"] for b in await gauges.breakers() if b["agent"] == STOCK and b["task_type"] == "reserve"}
    return state in states


async def _until(holds: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Wait until something holds; False when it takes too long."""
    try:
        async with asyncio.timeout(seconds):
            while not await holds():  # noqa: ASYNC110 - other processes do not set our events
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return False
    return True


async def _sleep_until(at: float) -> None:
    await asyncio.sleep(at - asyncio.get_running_loop().time())
