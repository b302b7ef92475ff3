"""An agent under test: a write that calls another agent's write."""

from __future__ import annotations

from typing import TypedDict

from agentgate import Agent, Context
from tests.e2e.agents.warehouse import Order, Receipt
from tests.e2e.effects_file import append

agent = Agent("desk", tier="core", concurrency=8)


class Sale(TypedDict):
    """The unit that took effect here, and the one that did in the warehouse."""

    unit: str
    reserved: str


@agent.handles("sell")
async def sell(order: Order, ctx: Context) -> Sale:
    """One effect here and one in the warehouse."""
    reserved = await ctx.call("warehouse", "reserve", order["id"], order, returns=Receipt)
    append(ctx.key, ctx.unit)
    return {"unit": ctx.unit, "reserved": reserved["unit"]}


if __name__ == "__main__":
    agent.run()
