"""The shop's side: orders come in, are handed to the team, and some customers press the button twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from agentgate import CallFailed, Gate
from agentgate.cli.demo.plan import Arrival, Plan
from agentgate.errors import LinkDown

OPEN_MAX: Final = 48  # orders under way at a time; the next one waits


@dataclass(kw_only=True)
class Ending:
    """What one order came to: the first answer, and what the repeats were told."""

    order_id: str
    seconds: float
    receipt: dict[str, Any] | None = None
    code: str = ""  # of the error, when there is no receipt
    detail: str = ""
    repeats: list[dict[str, Any] | str] = field(default_factory=list)


async def send_orders(gate: Gate, plan: Plan, ended: Callable[[Ending], None]) -> None:
    """Send every order at its time, and tell of each as soon as it has ended."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    places = asyncio.Semaphore(OPEN_MAX)
    async with asyncio.TaskGroup() as sending:
        for arrival in plan.arrivals:
            await asyncio.sleep(began + arrival.at_s - loop.time())
            await places.acquire()
            task = sending.create_task(_send(gate, arrival, ended))
            task.add_done_callback(lambda _: places.release())


async def _send(gate: Gate, arrival: Arrival, ended: Callable[[Ending], None]) -> None:
    loop = asyncio.get_running_loop()
    ending = Ending(order_id=arrival.id, seconds=0.0)
    began = loop.time()
    async with asyncio.TaskGroup() as both:
        if arrival.again_after_s is not None:
            both.create_task(_send_again(gate, arrival, arrival.again_after_s, ending))
        try:
            ending.receipt = await _confirm(gate, arrival)
        except (CallFailed, LinkDown) as error:
            ending.code, ending.detail = getattr(error, "code", "link_down"), str(error)
        ending.seconds = loop.time() - began
        ended(ending)


async def _send_again(gate: Gate, arrival: Arrival, after_s: float, ending: Ending) -> None:
    """The same order, and so the same key: the gate answers it without running it again."""
    await asyncio.sleep(after_s)
    try:
        ending.repeats.append(await _confirm(gate, arrival))
    except (CallFailed, LinkDown) as error:
        ending.repeats.append(getattr(error, "code", "link_down"))


async def _confirm(gate: Gate, arrival: Arrival) -> dict[str, Any]:
    receipt: dict[str, Any] = await gate.call("order_agent", "confirm", arrival.id, arrival.order)
    return receipt
