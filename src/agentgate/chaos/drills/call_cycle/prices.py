"""Knows what things cost, for whom; one at a time."""

from __future__ import annotations

from agentgate import Agent, SyncContext

agent = Agent("price_agent", concurrency=1)


@agent.handles("price", effect="read")
def price(order: dict[str, bool], ctx: SyncContext) -> int:
    """The price for a customer of this rating."""
    if order["new_customer"]:
        return 100
    return 100 - ctx.call("rating_agent", "rate", f"rating for {ctx.business_key}", effect="read", returns=int)


if __name__ == "__main__":
    agent.run()
