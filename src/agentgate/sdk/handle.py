"""What a handler has begun and may wait for later: `ctx.start`, `ctx.first`, and the awaitables of `Context`.

A call or a wait for a signal that is awaited at once is sent as such: its unit stands still until the outcome comes.
What was started runs on by itself; the gate hears that the unit stands still only while somebody awaits its handle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, Final, Generic, TypeVar, cast

from agentgate.model.link import CallParams, WaitForParams
from agentgate.model.outcome import Outcome
from agentgate.sdk.calling import settle, value_of
from agentgate.sdk.port import LinkPort

T = TypeVar("T")

FIRST_MAX: Final = 64  # as many as a gate takes in one wait


class Handle(Generic[T]):
    """Something that has been begun. `await` it for its value, several times if you like; or `cancel` it."""

    def __init__(
        self, port: LinkPort, params: CallParams | WaitForParams, deadline: float | None, returns: Any = None
    ) -> None:
        self.answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.id = port.start_call(params, deadline, partial(settle, self.answered))
        self._port = port
        self._returns = returns

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.answered.done()

    def cancel(self) -> None:
        """It is not needed any more. A write that runs already runs on; who awaits the handle sees `cancelled`."""
        if not self.done or self.answered.cancelled():  # by the end of the task that awaited it
            self._port.cancel_call(self.id)

    def value(self) -> T:
        """Its value, once it is done; raises `CallFailed`."""
        value: T = value_of(self.answered.result(), self._returns)
        return value

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        await wait_any(self._port, [self])
        return self.value()


class Pending(Coroutine[Any, Any, T]):
    """A call, or a wait for a signal, that begins when it is awaited; `start` begins it without waiting.

    It is a coroutine: what takes one (`asyncio.TaskGroup.create_task`, `asyncio.timeout`, ...) takes it. In a task of
    its own it counts as awaited too, and the handler as standing still: for what it works beside, use `ctx.start`.
    """

    def __init__(self, begin: Callable[..., Handle[T]], name: str) -> None:
        self._begin = begin
        # Python itself complains about one that nobody awaits, by this name.
        self._body = cast("CoroutineType[Any, Any, T]", _awaited(begin))
        self._body.__qualname__ = name

    def start(self) -> Handle[T]:
        """Begin now."""
        self._body.close()
        return self._begin(awaited=False)

    def __await__(self) -> Generator[Any, Any, T]:
        return self._body.__await__()

    def send(self, value: Any) -> Any:
        """As every coroutine."""
        return self._body.send(value)

    def throw(self, *error: Any) -> Any:
        """As every coroutine."""
        return self._body.throw(*error)

    def close(self) -> None:
        """As every coroutine."""
        self._body.close()


async def _awaited(begin: Callable[..., Handle[T]]) -> T:
    """No method: a coroutine that refers to its owner is complained of only when the rubbish is collected."""
    handle = begin(awaited=True)
    try:
        await handle.answered
    except asyncio.CancelledError:
        handle.cancel()
        raise
    return handle.value()


async def wait_any(port: LinkPort, handles: Sequence[Handle[Any]]) -> None:
    """Wait until one of them is done; the gate knows for what the unit stands still meanwhile."""
    if any(handle.done for handle in handles):
        return
    wait_id = port.begin_wait([handle.id for handle in handles])
    try:
        await asyncio.wait([handle.answered for handle in handles], return_when=asyncio.FIRST_COMPLETED)
    finally:
        port.end_wait(wait_id, tell=not any(handle.done for handle in handles))


def check_first(awaited: Sequence[object], kinds: tuple[type, ...], what: str) -> None:
    """Raise what is wrong with the arguments of `first`."""
    if not 0 < len(awaited) <= FIRST_MAX:
        raise ValueError(f"first() waits for 1 to {FIRST_MAX} things, not for {len(awaited)}")
    for one in awaited:
        if not isinstance(one, kinds):
            raise TypeError(f"first() takes {what}, not {one!r}")
