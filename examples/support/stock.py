"""Keeps the goods of an order on the shelf, and puts them back.

Furniture stands in the far warehouse, whose old system answers slowly. In a run with faults it is slower still, a shelf
may just be counted, and now and then the whole warehouse system is away for a while.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from agentgate import Agent, Rejected, TryLater
from effects import Effects
from shop import Goods, Reservation
from trouble import Trouble, work

agent = Agent("stock_agent", tier="core", concurrency=24)
effects = Effects("stock_agent")
trouble = Trouble("stock_agent")
counting = asyncio.Lock()  # this is the only process that takes from the shelves: count, then take


class Shelf(NamedTuple):
    """Where a product lies, and how many there were this morning."""

    place: str
    on_hand: int
    far: bool = False


SHELVES = {
    "KEY-101": Shelf("A1", 900),
    "MOU-204": Shelf("A2", 1500),
    "CAB-012": Shelf("A4", 6000),
    "PAD-015": Shelf("A5", 1200),
    "HUB-070": Shelf("B1", 800),
    "CAM-110": Shelf("B2", 900),
    "MIC-050": Shelf("B3", 800),
    "HDP-200": Shelf("B4", 1400),
    "SSD-100": Shelf("C1", 1100),
    "MON-270": Shelf("C3", 500),
    "MON-490": Shelf("C4", 0),
    "GPU-900": Shelf("C5", 0),
    "STD-044": Shelf("D1", 700),
    "BAG-016": Shelf("D2", 600),
    "CHR-300": Shelf("F1", 300, far=True),
    "DSK-310": Shelf("F2", 250, far=True),
    "LMP-320": Shelf("F3", 500, far=True),
    "SHF-330": Shelf("F4", 300, far=True),
}


@agent.handles("reserve")
async def reserve(goods: Goods) -> Reservation:
    """Put the goods aside for one order; rejected when we do not have them."""
    shelf = SHELVES.get(goods.sku)
    if shelf is None:
        raise Rejected(f"we do not sell {goods.sku}")
    if trouble.strikes(f"counted {goods.order_id}", 0.08):
        raise TryLater("the shelf is just being counted", after=0.2)
    await answer_of_the_warehouse(shelf)
    async with counting:
        left = shelf.on_hand - await effects.total("reserved", goods.sku) + await effects.total("released", goods.sku)
        if left < goods.n:
            raise Rejected(f"out of stock: {left} left of {goods.sku}")
        await effects.append("reserved", goods.order_id, shelf.place, sku=goods.sku, n=goods.n)
    return Reservation(shelf.place)


@agent.check("reserve")
async def was_reserved(goods: Goods) -> Reservation | None:
    """Asked when nobody knows whether `reserve` happened."""
    place = await effects.find("reserved", goods.order_id)
    return None if place is None else Reservation(place)


@agent.handles("release")
async def release(goods: Goods) -> None:
    """Put the goods of an order back."""
    await answer_of_the_warehouse(SHELVES[goods.sku])
    await effects.append("released", goods.order_id, sku=goods.sku, n=goods.n)


async def answer_of_the_warehouse(shelf: Shelf) -> None:
    """Wait for its system, which may be slow, or away."""
    if not trouble.is_switched("down"):
        await work(*((0.08, 0.25) if not shelf.far else (1.5, 1.8) if not trouble.on else (3.0, 3.3)))
    if trouble.is_switched("down"):  # it may have gone away while we waited
        raise ConnectionError("the warehouse system does not answer")


if __name__ == "__main__":
    agent.run()
