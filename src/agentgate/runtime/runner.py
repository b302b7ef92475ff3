"""Where an adapter's synchronous object lives: in line, or in a process of its own.

An adapter is written as a plain synchronous class; the runner builds it where it shall run and calls its methods
there, one after the other. `InlineRunner` is for simulations and tests; `process_runner.ProcessRunner` is for gates.
There is none on a thread: beside a busy event loop a thread has to win the interpreter back at every step of a
statement, which cost a keyed call a sixth of its CPU and its slowest ones several times the wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

from agentgate.errors import StoreBroke

Arguments = TypeVarTuple("Arguments")
Answer = TypeVar("Answer")


class Runner(Protocol):
    """Owns one object and calls its methods, in the order asked for."""

    @property
    def alive(self) -> bool:
        """Whether the object is there; a process can lose it."""
        ...

    def share(self, *descriptors: int) -> None:
        """Keep these files open where the object lives, too, from the next `start` on."""
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

    def share(self, *descriptors: int) -> None:
        """They are open here."""

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
