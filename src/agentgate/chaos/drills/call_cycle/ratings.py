"""Rates customers by what they bought last; one at a time."""

from __future__ import annotations

from agentgate import Agent, CallFailed, SyncContext

agent = Agent("rating_agent", concurrency=1)


@agent.handles("rate", effect="read")
def rate(_: None, ctx: SyncContext) -> int:
    """How much off, in per cent; none for somebody about whom nothing can be found out."""
    try:
        return ctx.call(
            "order_agent", "last_order", f"for {ctx.business_key}", ctx.business_key, effect="read", returns=int
        )
    except CallFailed:
        return 0


if __name__ == "__main__":
    agent.run()
