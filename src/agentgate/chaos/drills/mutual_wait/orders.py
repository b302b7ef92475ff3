"""Confirms orders once they are reviewed, and only then hands over the material."""

from __future__ import annotations

import asyncio

from agentgate import Agent, Context

agent = Agent("order_agent", tier="core", concurrency=4)


@agent.handles("confirm", promises=["material.sent"])
async def confirm(_: None, ctx: Context) -> str:
    """Wait for the review; the material goes out with the goods."""
    verdict = await ctx.wait_for("review.done", from_agent="review_agent", returns=str)
    await ctx.signal("material.sent", to="review_agent")
    return verdict


@agent.handles("quote")
async def quote(_: None) -> int:
    """What an order would cost."""
    await asyncio.sleep(0.05)
    return 100


if __name__ == "__main__":
    agent.run()
