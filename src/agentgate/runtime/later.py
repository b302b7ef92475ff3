"""A value that comes later, once, and those who wait for it.

What an `asyncio.Future` does, with the shortest way from the value to whoever waits: a future schedules its callbacks,
which end other futures, which schedule their tasks, and every step costs a call and, in a busy loop, a turn of all
others. Here callbacks run at once and a waiter is woken directly. Nobody who waits can cancel it, and an error that
nobody fetches is no loose end: its owner has others to tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

import structlog

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Later(Generic[T]):
    """Ends once: with a value, with an error, or without either (`cancel`)."""

    __slots__ = ("_callbacks", "_ended", "_error", "_value", "_waiters")

    def __init__(self) -> None:
        self._ended = False
        self._value: T
        self._error: BaseException | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._callbacks: list[Callable[[Later[T]], object]] | None = None

    def done(self) -> bool:
        """Whether it has ended."""
        return self._ended

    def result(self) -> T:
        """The value; raises the error, or `asyncio.InvalidStateError` before the end."""
        if not self._ended:
            raise asyncio.InvalidStateError
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self) -> BaseException | None:
        """The error it ended with."""
        if not self._ended:
            raise asyncio.InvalidStateError
        return self._error

    def cancelled(self) -> bool:
        """Whether it ended without a value because its owner stopped."""
        return isinstance(self._error, asyncio.CancelledError)

    def set_result(self, value: T) -> None:
        """End with a value."""
        self._value = value
        self._end()

    def set_exception(self, error: BaseException) -> None:
        """End with an error."""
        self._error = error
        self._end()

    def cancel(self) -> None:
        """End without a value; who waits sees a cancellation."""
        if not self._ended:
            self.set_exception(asyncio.CancelledError())

    def then(self, callback: Callable[[Later[T]], object]) -> None:
        """Call this at the end, or now if it is over. What it raises is logged and hurts nobody else."""
        if self._ended:
            _call(callback, self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def __await__(self) -> Generator[Any, None, T]:
        if not self._ended:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                yield from waiter
            finally:
                self._forget(waiter)
        return self.result()

    def _end(self) -> None:
        if self._ended:
            raise asyncio.InvalidStateError
        self._ended = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            _call(callback, self)

    def _forget(self, waiter: asyncio.Future[None]) -> None:
        self._waiters.remove(waiter)


async def first(pending: Sequence[Later[Any]], until: float) -> Later[Any] | None:
    """The first of these that has ended, or None when loop time `until` passes before."""
    ended = _ended(pending)
    if ended is not None:
        return ended
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    for one in pending:
        one._waiters.append(waiter)  # noqa: SLF001 - the other half of the class
    timer = loop.call_at(until, _wake, waiter)
    try:
        await waiter
    finally:
        timer.cancel()
        for one in pending:
            one._forget(waiter)  # noqa: SLF001 - the same
    return _ended(pending)


def _ended(pending: Sequence[Later[Any]]) -> Later[Any] | None:
    for one in pending:  # a loop, because a generator costs twice as much, and this is on the path of every call
        if one.done():
            return one
    return None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _call(callback: Callable[[Later[T]], object], ended: Later[T]) -> None:
    try:
        callback(ended)
    except Exception:
        log.exception("callback_failed")
