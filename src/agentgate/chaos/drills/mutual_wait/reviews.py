"""Reviews orders by their material."""

from __future__ import annotations

import asyncio

from agentgate import Agent, Context

agent = Agent("review_agent", concurrency=4)


@agent.handles("review", promises=["review.done"])
async def review(_: None, ctx: Context) -> str:
    """Wait for the material, look at it, say so."""
    await ctx.wait_for("material.sent", from_agent="order_agent")
    await ctx.signal("review.done", value="fine")
    return "filed"


@agent.handles("rate", effect="read")
async def rate(_: None) -> int:
    """How reliable a customer is."""
    await asyncio.sleep(0.05)
    return 5


if __name__ == "__main__":
    agent.run()
