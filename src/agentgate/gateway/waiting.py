"""Waiting for the first of several futures, until a time, without ever cancelling them.

A future of a unit or of a store write has an owner of its own; whoever waits for it may leave, and it goes on.
`asyncio.wait` would do, at three times the price, on the path of every call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


def _observe(future: asyncio.Future[Any]) -> None:
    """Whoever waited has left; an error that comes later is for nobody, and no loose end."""
    if not future.cancelled():
        future.exception()


def _wake(waiter: asyncio.Future[None], _done: object = None) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def first(futures: Iterable[asyncio.Future[Any]], until: float) -> asyncio.Future[Any] | None:
    """The first done future of those given, or None when loop time `until` passes before."""
    waited = tuple(futures)
    for future in waited:
        if future.done():
            return future
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_done: object = None) -> None:
        _wake(waiter)

    for future in waited:
        future.add_done_callback(wake)
    timer = loop.call_at(until, _wake, waiter)
    try:
        await waiter
    finally:
        timer.cancel()
        for future in waited:
            future.remove_done_callback(wake)
            future.add_done_callback(_observe)
    return next((future for future in waited if future.done()), None)
