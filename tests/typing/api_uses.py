"""How people use the public names. mypy reads this file, nobody runs it.

`assert_type` says what a type checker has to make of a call; a `type: ignore` that suppresses nothing is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from agentgate import Agent, CallFailed, Context, Gate, OutcomeUnknown, Rejected, SyncContext, TryLater, skill


@dataclass
class Order:
    id: str
    n: int


@dataclass
class Receipt:
    order: str


agent = Agent("order_agent", tier="core", concurrency=8)


@agent.handles("confirm", compensate="unconfirm", grade="required", effect="write", repeatable=False, timeout_s=20)
async def confirm(order: Order, ctx: Context) -> Receipt:
    assert_type(await ctx.call("stock", "reserve", order.id, {"n": order.n}, returns=Receipt), Receipt)
    assert_type(await ctx.call(skill("reserve"), "reserve", order.id), Any)
    assert_type(await ctx.call("stock", "count", effect="read", timeout=2.5, returns=int), int)
    assert_type(await ctx.call("stock", "lines", "k", returns=list[Receipt]), list[Receipt])
    handle = ctx.start("stock", "count", "k", returns=int)
    assert_type(await handle, int)
    assert_type(await ctx.wait_for("stock.counted", from_agent="stock", timeout=5, returns=int), int)
    assert_type(await ctx.wait_for("stock.counted", about=order.id), Any)
    assert_type(await ctx.first(handle, ctx.call("stock", "guess", "k", returns=int)), int)
    assert_type(handle.done, bool)
    await ctx.signal("order.seen", about=order.id, value=order, to="stock")
    ctx.progress("half")
    assert_type(ctx.deadline, float)
    assert_type(ctx.expired, bool)
    if order.n > 5:
        raise Rejected("too many", detail={"max": 5})
    if order.n > 3:
        raise TryLater("soon", after=2.0)
    try:
        await ctx.call("mail", "send", order.id, action="reminder", priority=3, heavy=True, again=True, join=False)
    except OutcomeUnknown as error:
        assert_type(error.advice, str)
    except CallFailed as error:
        assert_type(error.retry_after_ms, int | None)
    return Receipt(order.id)


@agent.handles("count")
def count(order: Order, ctx: SyncContext) -> int:
    assert_type(ctx.call("stock", "count", "k", returns=int), int)
    handle = ctx.start("stock", "count", "k", returns=int)
    assert_type(handle.result(), int)
    assert_type(ctx.first(handle, handle), int)
    assert_type(ctx.wait_for("stock.counted", returns=int), int)
    ctx.signal("order.seen")
    return 1


@agent.handles("simple", promises=["order.seen"])
async def simple(order: Order) -> None: ...


@agent.degraded("confirm", timeout_s=2)
async def come_back_later(order: Order) -> Receipt:
    return Receipt(order.id)


@agent.check("confirm")
async def was_confirmed(order: Order, ctx: Context) -> Receipt | None: ...


async def client() -> None:
    async with Gate("http://127.0.0.1:7070", name="shop") as gate:
        assert_type(gate, Gate)
        assert_type(await gate.call("order_agent", "confirm", "o1", {"id": "o1"}, returns=Receipt), Receipt)
        await gate.call("order_agent", "confirm", "o1", prio=3)  # type: ignore[call-overload]  # no such option or value
        await gate.call("order_agent", "confirm", "o1", effect="maybe")  # type: ignore[call-overload]  # no such option or value


async def how_handlers_are_tested() -> None:
    ctx = Context.fake({"reserve": Receipt("o1")}, deadline=5, key="k")
    assert_type(await confirm(Order("o1", 1), ctx), Receipt)
    assert_type(ctx.notes, list[str])
    assert_type(ctx.signals[0].name, str)
    assert_type(count(Order("o1", 1), SyncContext.fake({"count": 3})), int)


Agent("a", tier="vital")  # type: ignore[arg-type]  # no such value
agent.handles("t", effect="maybe")  # type: ignore[arg-type]  # no such value
