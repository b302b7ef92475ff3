"""Hands out vouchers. Nice to have: an order does not wait for it, and does not fail with it."""

from __future__ import annotations

from agentgate import Agent, Context
from effects import Effects
from shop import Order, Voucher
from trouble import work

agent = Agent("marketing_agent", tier="optional")
effects = Effects("marketing_agent")


@agent.handles("grant_voucher")
async def grant_voucher(order: Order, ctx: Context) -> Voucher:
    """Ten per cent off the next order, for somebody whom we owe something."""
    await work(0.03, 0.1)
    code = f"SORRY-{order.id}"
    await effects.append("voucher", order.id, f"{code} for {ctx.key}")
    return Voucher(code)


@agent.check("grant_voucher")
async def was_granted(order: Order) -> Voucher | None:
    """Asked when nobody knows whether the voucher was handed out."""
    return None if await effects.find("voucher", order.id) is None else Voucher(f"SORRY-{order.id}")


if __name__ == "__main__":
    agent.run()
