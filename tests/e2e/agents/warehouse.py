"""An agent under test: a write that takes its time before and after its effect."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from agentgate import Agent, Context
from tests.e2e.effects_file import append

agent = Agent("warehouse", concurrency=8)


class Order(TypedDict):
    """What to reserve, and how long that takes."""

    id: str
    before_s: float
    after_s: float


class Receipt(TypedDict):
    """The unit that took effect."""

    unit: str


@agent.handles("reserve")
async def reserve(order: Order, ctx: Context) -> Receipt:
    """One effect for one key."""
    await asyncio.sleep(order["before_s"])
    append(ctx.key, ctx.unit)
    await asyncio.sleep(order["after_s"])
    return {"unit": ctx.unit}


if __name__ == "__main__":
    agent.run()
