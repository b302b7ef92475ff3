"""Hands out vouchers, one at a time. Nice to have: an order does not fail with it."""

from __future__ import annotations

from agentgate import Agent, CallFailed, SyncContext
from effects import Effects
from shop import Order, Reply, Voucher
from trouble import work_alone

agent = Agent("marketing_agent", tier="optional", concurrency=1)
effects = Effects("marketing_agent")
granted: dict[str, list[str]] = {}  # customer -> codes


@agent.handles("grant_voucher")
def grant_voucher(order: Order, ctx: SyncContext) -> Voucher:
    """Ten per cent off the next order, for somebody whom we owe something."""
    work_alone(0.03, 0.1)
    code = f"SORRY-{order.id}"
    granted.setdefault(order.customer, []).append(code)
    effects.append_now("voucher", order.id, f"{code} for {ctx.key}: {worded(order, ctx)}")
    return Voucher(code)


def worded(order: Order, ctx: SyncContext) -> str:
    """What goes with the voucher; a plain line will do."""
    try:
        return ctx.call("chit_chat_agent", "word", f"voucher of {order.id}", order, effect="read", returns=Reply).text
    except CallFailed:
        return "For your next order."


@agent.check("grant_voucher")
async def was_granted(order: Order) -> Voucher | None:
    """Asked when nobody knows whether the voucher was handed out."""
    return None if await effects.find("voucher", order.id) is None else Voucher(f"SORRY-{order.id}")


@agent.handles("history", effect="read")
def history(order: Order) -> list[str]:
    """Which vouchers this customer has had so far."""
    return granted.get(order.customer, [])


if __name__ == "__main__":
    agent.run()
