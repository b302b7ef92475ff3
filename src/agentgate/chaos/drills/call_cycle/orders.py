"""Takes orders, one at a time."""

from __future__ import annotations

from agentgate import Agent, SyncContext

agent = Agent("order_agent", tier="core", concurrency=1)


@agent.handles("place")
def place(order: dict[str, bool], ctx: SyncContext) -> str:
    """Place an order at its price."""
    price = ctx.call("price_agent", "price", f"price of {ctx.business_key}", order, effect="read", returns=int)
    return f"placed at {price}"


@agent.handles("last_order", effect="read")
def last_order(customer: str) -> int:
    """What this customer paid last."""
    return len(customer)


if __name__ == "__main__":
    agent.run()
