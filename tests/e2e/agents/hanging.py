"""An agent under test: one handler blocks the event loop, one hangs, one stands in for it."""

from __future__ import annotations

import asyncio
import time

from agentgate import Agent

agent = Agent("hanging", concurrency=4)


@agent.handles("block", timeout_s=3)
async def block(seconds: float) -> str:
    """Hold everybody up."""
    time.sleep(seconds)  # noqa: ASYNC251 - what this agent is for
    return "blocked"


@agent.handles("hang", timeout_s=1)
async def hang(number: int) -> str:
    """Wait for what never comes."""
    await asyncio.Event().wait()
    return f"never {number}"


@agent.degraded("hang")
async def stand_in(number: int) -> str:
    """Something to go on with."""
    return f"later {number}"


@agent.handles("quick")
async def quick(number: int) -> int:
    """Nothing to it, where the loop is free."""
    return number


if __name__ == "__main__":
    agent.run()
