"""An agent under test: a read that works."""

from __future__ import annotations

import asyncio

from agentgate import Agent

agent = Agent("reader", concurrency=8)


@agent.handles("look", effect="read")
async def look(number: int) -> int:
    """Say it back."""
    await asyncio.sleep(0.005)
    return number


if __name__ == "__main__":
    agent.run()
