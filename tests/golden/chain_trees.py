"""Small stories on a gate in virtual time, and what `agentgate chains` shows of them."""

from __future__ import annotations

import contextlib
from asyncio import sleep
from collections.abc import Awaitable, Callable
from io import StringIO
from typing import Final

import msgspec
from rich.console import Console

from agentgate.cli.chains import trees_of
from agentgate.errors import CallFailed, Rejected
from agentgate.sdk.agent import Agent
from agentgate.sdk.context import Context
from agentgate.testing.local_gate import LocalGate, local_gate
from agentgate.testing.loop import run_virtual

KEY: Final = "order_7"
WIDTH: Final = 120


def team() -> list[Agent]:
    """An order agent that reads a price and reserves; what goes wrong is said by the goods that are ordered."""
    order, price, stock = Agent("order_agent"), Agent("price_agent"), Agent("stock_agent")
    asked: list[str] = []

    @order.handles("confirm")
    async def confirm(sku: str, ctx: Context) -> str:
        await ctx.call("price_agent", "quote", payload=sku, effect="read")
        return str(await ctx.call("stock_agent", "reserve", ctx.business_key, sku))

    @price.handles("quote", effect="read")
    async def quote(sku: str) -> int:
        asked.append(sku)
        await sleep(0.02)
        if sku == "rug" and len(asked) == 1:
            raise ConnectionError("the price list does not answer")
        return 12

    @stock.handles("reserve", timeout_s=2)
    async def reserve(sku: str) -> str:
        await sleep(5 if sku == "sofa" else 0.05)
        if sku == "gold":
            raise Rejected("we sell no gold")
        return "A7"

    return [order, price, stock]


async def _order(gate: LocalGate, sku: str, timeout_s: float = 30) -> None:
    with contextlib.suppress(CallFailed):
        await gate.call("order_agent", "confirm", KEY, sku, timeout=timeout_s)


async def _twice(gate: LocalGate) -> None:
    await _order(gate, "lamp")
    await _order(gate, "lamp")


STORIES: Final[dict[str, Callable[[LocalGate], Awaitable[None]]]] = {
    "done": lambda gate: _order(gate, "lamp"),
    "retried": lambda gate: _order(gate, "rug"),
    "late": lambda gate: _order(gate, "sofa"),
    "rejected": lambda gate: _order(gate, "gold"),
    "deadline": lambda gate: _order(gate, "sofa", timeout_s=3),
    "repeated": _twice,
}


def tree_of(names: list[str]) -> str:
    """The tree of a story, as text."""

    async def told() -> str:
        async with local_gate(*team(), name="shop") as gate:
            await STORIES[names[0]](gate)
            spans = [msgspec.to_builtins(span) for span in await gate.spans(KEY)]
        out = StringIO()
        screen = Console(file=out, width=WIDTH, no_color=True, highlight=False)
        for tree in trees_of(spans):
            screen.print(tree)
        return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())

    return f"```text\n{run_virtual(told)}```\n"
