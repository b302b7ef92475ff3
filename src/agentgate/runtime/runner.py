"""Where an adapter's synchronous object lives: in line, on a thread of its own, or in a process of its own.

An adapter is written as a plain synchronous class; the runner builds it where it shall run and calls its methods
there, one after the other. `InlineRunner` is for simulations, where a thread would break the order of events.
`ThreadRunner` needs nothing, but beside a busy event loop the thread has to win the interpreter back at every step of
a statement; `process_runner.ProcessRunner` does not share an interpreter at all. Measured with keyed calls beside a
saturated loop on two cores: equal medians, p99 67 to 330 ms on a thread and 20 to 24 ms in a process, which costs a
fifth more CPU a call, 25 MB, and some tenths of a second at the start.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple, Unpack

from agentgate.errors import StoreBroke

Arguments = TypeVarTuple("Arguments")
Answer = TypeVar("Answer")

# How long a busy event loop may keep the interpreter from a thread that wants it back. A waiting thread asks for it
# only after a whole interval in which nobody let go of it even for a moment, and a loop lets go at every system call:
# with the default of 5 ms, and still with half a millisecond, a store beside a saturated loop stood still for seconds.
SWITCH_INTERVAL_S: Final = 0.0001


class Runner(Protocol):
    """Owns one object and calls its methods, in the order asked for."""

    @property
    def alive(self) -> bool:
        """Whether the object is there; a process can lose it."""
        ...

    async def start(self, build: Callable[[Unpack[Arguments]], object], *arguments: *Arguments) -> None:
        """Build the object where it shall live; one that was there before is dropped."""
        ...

    async def run(self, method: Callable[[Any, Unpack[Arguments]], Answer], *arguments: *Arguments) -> Answer:
        """Call a method of the object. Being cancelled does not stop what has begun."""
        ...

    async def close(self) -> None:
        """Drop the object and give back the thread or process; safe to call twice."""
        ...


class InlineRunner:
    """Calls the object here and now."""

    def __init__(self) -> None:
        self._hosted: object | None = None

    @property
    def alive(self) -> bool:
        """Between `start` and `close`."""
        return self._hosted is not None

    async def start(self, build: Callable[[Unpack[Arguments]], object], *arguments: *Arguments) -> None:
        """Build the object."""
        self._hosted = build(*arguments)

    async def run(self, method: Callable[[Any, Unpack[Arguments]], Answer], *arguments: *Arguments) -> Answer:
        """Call a method of the object."""
        if self._hosted is None:
            raise StoreBroke("the store is closed")
        return method(self._hosted, *arguments)

    async def close(self) -> None:
        """Drop the object."""
        self._hosted = None


class ThreadRunner:
    """One thread, from `start` to `close`; it lowers the interpreter's switch interval for the whole process."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: ThreadPoolExecutor | None = None
        self._hosted: object | None = None

    @property
    def alive(self) -> bool:
        """Between `start` and `close`."""
        return self._hosted is not None

    async def start(self, build: Callable[[Unpack[Arguments]], object], *arguments: *Arguments) -> None:
        """Build the object on the thread."""
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL_S))
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=self._name)
        self._hosted = await asyncio.wrap_future(self._thread.submit(build, *arguments))

    async def run(self, method: Callable[[Any, Unpack[Arguments]], Answer], *arguments: *Arguments) -> Answer:
        """Call a method of the object after everything that was asked for before."""
        if self._thread is None:
            raise StoreBroke("the store is closed")
        return await asyncio.wrap_future(self._thread.submit(method, self._hosted, *arguments))

    async def close(self) -> None:
        """Wait for what has begun, then end the thread."""
        thread, self._thread, self._hosted = self._thread, None, None
        if thread is not None:
            thread.shutdown(wait=True)
