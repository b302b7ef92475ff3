"""Waiting for the first of several futures, until a time, without ever cancelling them.

A future of a unit or of a store write has an owner of its own; whoever waits for it may leave, and it goes on.
`asyncio.wait` would do, at three times the price, on the path of every call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any


def _observe(future: asyncio.Future[Any]) -> None:
    """Whoever waited has left; an error that comes later is for nobody, and no loose end."""
    if not future.cancelled():
        future.exception()


async def first(futures: Sequence[asyncio.Future[Any]], until: float) -> asyncio.Future[Any] | None:
    """The first done future of those given, or None when loop time `until` passes before."""
    done = _done(futures)
    if done is not None:
        return done
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    wake = partial(_wake, waiter)
    for future in futures:
        future.add_done_callback(wake)
    timer = loop.call_at(until, wake)
    try:
        await waiter
    finally:
        timer.cancel()
        for future in futures:
            future.remove_done_callback(wake)
            if future.done():
                _observe(future)
            else:
                future.add_done_callback(_observe)
    return _done(futures)


def _done(futures: Sequence[asyncio.Future[Any]]) -> asyncio.Future[Any] | None:
    for future in futures:  # a loop, because a generator costs twice as much, and this is on the path of every call
        if future.done():
            return future
    return None


def _wake(waiter: asyncio.Future[None], _done: object = None) -> None:
    if not waiter.done():
        waiter.set_result(None)
