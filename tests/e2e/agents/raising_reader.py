"""An agent under test: an instance of `reader` whose handler always raises, at once."""

from __future__ import annotations

from agentgate import Agent

agent = Agent("reader", concurrency=8)


@agent.handles("look", effect="read")
async def look(number: int) -> int:
    """Raise."""
    raise RuntimeError(f"no disk, so no {number}")


if __name__ == "__main__":
    agent.run()
