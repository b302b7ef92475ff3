"""An agent under test: one skill of each kind; its writes take effect at once and answer later."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TypedDict

from agentgate import Agent, Context
from tests.e2e.effects_file import PLACE, append, units_of

agent = Agent("clerk", concurrency=4)


class Order(TypedDict):
    """What it is about, and how long its work takes."""

    id: str
    seconds: float


class Receipt(TypedDict):
    """The unit that took effect."""

    unit: str


async def take_effect(order: Order, ctx: Context) -> Receipt:
    """A third of the time before the effect, the rest after it."""
    await asyncio.sleep(order["seconds"] / 3)
    append(ctx.key, ctx.unit)
    await asyncio.sleep(order["seconds"] * 2 / 3)
    return {"unit": ctx.unit}


@agent.handles("charge")
async def charge(order: Order, ctx: Context) -> Receipt:
    """A plain write: when this process dies, nobody can tell."""
    return await take_effect(order, ctx)


@agent.handles("ship")
async def ship(order: Order, ctx: Context) -> Receipt:
    """A write with a check."""
    return await take_effect(order, ctx)


@agent.check("ship")
async def was_shipped(order: Order, ctx: Context) -> Receipt | None:
    """What the file says."""
    units = units_of(Path(os.environ[PLACE])).get(f"{ctx.caller}:ship:{order['id']}:run")
    return {"unit": units[0]} if units else None


@agent.handles("tag", repeatable=True)
async def tag(order: Order, ctx: Context) -> Receipt:
    """A write that may run again without harm."""
    return await take_effect(order, ctx)


@agent.handles("look", effect="read")
async def look(order: Order) -> str:
    """A read."""
    await asyncio.sleep(order["seconds"])
    return order["id"]


if __name__ == "__main__":
    agent.run()
