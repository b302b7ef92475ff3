"""Who gave way in a knot may wait on, and be in the next one; in virtual time."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from agentgate import Agent, CallFailed, Context
from tests.sim.news_kit import gate_of, now
from tests.sim.wire_peer import play

FOUND_S = 3.0  # by then a knot has been signalled (D2)


def test_who_gave_way_and_waits_on_is_told_of_the_next_circle_in_time() -> None:
    """D2: the grace time is for the waits that were given up; what closes after them is found as soon as any other."""
    told: list[tuple[str, float]] = []
    order, review = Agent("order_agent"), Agent("review_agent")

    async def wait_on(ctx: Context, name: str, other: str) -> str:
        while len(told) < 4:
            try:
                return str(await ctx.wait_for(name, from_agent=other))
            except CallFailed as failed:
                told.append((failed.code, now()))
        return "without"

    @order.handles("confirm", promises=["materials.sent"])
    async def confirm(_: None, ctx: Context) -> str:
        return await wait_on(ctx, "review.finished", "review_agent")

    @review.handles("review", promises=["review.finished"])
    async def check(_: None, ctx: Context) -> str:
        return await wait_on(ctx, "materials.sent", "order_agent")

    async def story() -> None:
        async with gate_of(order, review) as gate:
            calls = [gate.call("order_agent", "confirm", "o1"), gate.call("review_agent", "review", "o1")]
            await asyncio.gather(*calls)
            assert [code for code, _ in told[:4]] == ["deadlock"] * 4
            assert all(after - before <= FOUND_S for before, after in pairwise([0.0, *(at for _, at in told[:4])]))
            deadlocks = gate.platform.gateway.waits.deadlocks
            assert (deadlocks.by_how["refused"], deadlocks.by_how["confirmed"], deadlocks.resolved) == (0, 4, 4)

    play(story)
