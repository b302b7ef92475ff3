"""Looks at an order as a careful colleague would, before anything leaves the house.

A large one is looked at together with the customer's papers. When the gate says that those who have them wait for this
very review (`deadlock`), it is done without.
"""

from __future__ import annotations

from agentgate import Agent, CallFailed, Context
from shop import Order, Verdict
from trouble import work

agent = Agent("review_agent", tier="standard", concurrency=16)

THIS_YEAR = 2026
GIFT_CARDS_EUR_MAX = 400  # gift cards are as good as cash, and cannot be called back
NEWCOMER_PIECES_MAX = 20
WARNING_SIGNS = (
    "gift card codes", "do not verify", "freight forwarder", "cartes cadeaux", "transitaire", "inutile de m'appeler",
    "western union", "keine rückfragen",
)  # fmt: skip


@agent.handles("review", effect="read")
async def review(order: Order) -> Verdict:
    """Say whether the order may go out."""
    await work(0.05, 0.15)
    return look_at(order)


@agent.handles("review_papers", effect="read", timeout_s=25, promises=["review.finished"])
async def review_papers(order: Order, ctx: Context) -> None:
    """Say whether a large order may go out, to whoever waits for it."""
    try:
        await ctx.wait_for("papers.sent", from_agent="order_agent", returns=str)
    except CallFailed as failed:
        if failed.code != "deadlock":
            raise
    await work(0.05, 0.15)
    await ctx.signal("review.finished", value=look_at(order), to="order_agent")


def look_at(order: Order) -> Verdict:
    """The verdict on an order."""
    if order.sku.startswith("GIFT") and order.total_eur > GIFT_CARDS_EUR_MAX:
        return Verdict(ok=False, reason=f"gift cards for {order.total_eur} EUR in one order")
    if order.since >= THIS_YEAR and order.n > NEWCOMER_PIECES_MAX:
        return Verdict(ok=False, reason=f"{order.n} pieces for a new customer")
    signs = [sign for sign in WARNING_SIGNS if sign in order.note.lower()]
    if signs:
        return Verdict(ok=False, reason=f"the note says: {', '.join(signs)}")
    return Verdict(ok=True)


if __name__ == "__main__":
    agent.run()
