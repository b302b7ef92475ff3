"""Takes an order from the customer's note to the receipt. It knows the others by name, and nothing about retries.

    intent  ->  stock  ->  review  ->  confirm  ->  sentiment, marketing, chit-chat  ->  notify

A "no" for a business reason (sold out, not to be trusted) is an answer, not a failure: the order ends `declined`. When
stock or review do not work, the order takes its degraded branch: it ends `back_ordered`, and the goods come later.

Large orders are reviewed with the customer's papers at hand, and the two agents tell one another how far they are. In a
run with faults the papers of some are kept until the review is finished, which waits for the papers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from agentgate import Agent, CallFailed, Context, OutcomeUnknown
from effects import Effects
from shop import Goods, Intent, Message, Mood, Note, Order, Receipt, Reply, Reservation, Sent, Status, Verdict, Voucher
from trouble import Trouble

T = TypeVar("T")

agent = Agent("order_agent", tier="core", concurrency=48)
effects = Effects("order_agent")
trouble = Trouble("order_agent")

NEEDS_NO_SHELF = ("GIFT", "BOOK")  # sent as a file
PATIENCE_S = 2.0  # with agents that only make the message nicer
LARGE_EUR = 800  # from here on review wants to see papers
REVIEW_S = 15.0  # with papers; after it there is still time to tell the customer


@agent.handles("confirm", promises=["papers.sent"])
async def confirm(order: Order, ctx: Context) -> Receipt:
    """Bring one order to its end and tell the customer."""
    note = Note(order.note, order.country)
    intent = await ctx.call("intent_agent", "classify", order.id, note, effect="read", returns=Intent)
    status, reason, shelf = await decide(order, ctx)
    mood, voucher, extra = await niceties(order, intent, note, ctx)
    message = Message(order.id, order.customer, intent.language, intent.urgent, status, extra)
    told = await attempt(ctx.call("notify_agent", "send", order.id, message, returns=Sent))
    return Receipt(order.id, status, told is not None, shelf, reason, mood, voucher)


async def decide(order: Order, ctx: Context) -> tuple[Status, str, str]:
    """What becomes of the order, why, and where the goods wait."""
    goods = None if order.sku.startswith(NEEDS_NO_SHELF) else Goods(order.id, order.sku, order.n)
    try:
        shelf = "" if goods is None else await reserve(goods, ctx)
        verdict = await reviewed(order, ctx)
        if not verdict.ok:
            if goods is not None:
                await ctx.call("stock_agent", "release", order.id, goods)
            return "declined", verdict.reason, ""
    except OutcomeUnknown:
        raise  # nobody can say what is on the shelf: that is for a person to find out, not for a default
    except CallFailed as failed:
        if failed.fault == "rejected":
            return "declined", failed.detail, ""
        # The degraded branch. What a retry can cure the gate has retried; asking again from here would only be load.
        await effects.append("back_ordered", order.id, failed.code)
        return "back_ordered", failed.code, ""
    await effects.append("confirmed", order.id)
    return "confirmed", "", shelf


async def reserve(goods: Goods, ctx: Context) -> str:
    """The shelf on which the goods of this order wait."""
    return (await ctx.call("stock_agent", "reserve", goods.order_id, goods, returns=Reservation)).shelf


async def reviewed(order: Order, ctx: Context) -> Verdict:
    """What review says; for a large order, as soon as it has seen the papers."""
    if order.total_eur < LARGE_EUR:
        return await ctx.call("review_agent", "review", order.id, order, effect="read", returns=Verdict)
    _ = ctx.start("review_agent", "review_papers", order.id, order, effect="read")
    if not trouble.strikes(f"papers {order.id}", 0.3):
        await ctx.signal("papers.sent", value=f"passport of {order.customer}", to="review_agent")
    return await ctx.wait_for("review.finished", from_agent="review_agent", timeout=REVIEW_S, returns=Verdict)


async def niceties(order: Order, intent: Intent, note: Note, ctx: Context) -> tuple[str, str, str]:
    """The mood, a voucher and a friendly line, as far as they can be had."""
    async with asyncio.TaskGroup() as asked:
        care = asked.create_task(take_care(order, note, ctx))
        line = asked.create_task(small_talk(order, intent, note, ctx))
    return *care.result(), line.result()


async def take_care(order: Order, note: Note, ctx: Context) -> tuple[str, str]:
    """How the customer feels; and a voucher for the unhappy."""
    guess = await attempt(
        ctx.call("sentiment_agent", "mood", order.id, note, effect="read", timeout=PATIENCE_S, returns=Mood)
    )
    if guess is None or guess.mood != "unhappy":
        return guess.mood if guess else "unknown", ""
    voucher = await attempt(ctx.call("marketing_agent", "grant_voucher", order.id, order, returns=Voucher))
    return guess.mood, voucher.code if voucher else ""


async def small_talk(order: Order, intent: Intent, note: Note, ctx: Context) -> str:
    """A friendly line, for those who began it."""
    if not intent.chatty:
        return ""
    reply = await attempt(
        ctx.call("chit_chat_agent", "reply", order.id, note, effect="read", timeout=PATIENCE_S, returns=Reply)
    )
    return reply.text if reply else ""


async def attempt(call: Awaitable[T]) -> T | None:
    """The answer, or None: the order goes on without."""
    try:
        return await call
    except CallFailed:
        return None


if __name__ == "__main__":
    agent.run()
