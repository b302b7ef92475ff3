"""An object in a runner that is there when it is asked: opened anew when the process it lived in has died."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, TypeVarTuple, Unpack

from agentgate.errors import StoreBroke
from agentgate.runtime.runner import Runner

Arguments = TypeVarTuple("Arguments")
Answer = TypeVar("Answer")


class Reopening:
    """Between `open` and `close`; `start` builds the object in the runner and opens it."""

    def __init__(self, runner: Runner, start: Callable[[], Awaitable[None]]) -> None:
        self._runner = runner
        self._start = start
        self._in_use = False
        self._lock = asyncio.Lock()

    async def open(self) -> None:
        """Build and open it."""
        await self._start_or_close()
        self._in_use = True

    async def close(self, method: Callable[[Any], None]) -> None:
        """Close it with this method of its own, and give the runner back."""
        self._in_use = False
        try:
            with contextlib.suppress(StoreBroke):  # it was not open, or its process is gone
                await self._runner.run(method)
        finally:
            await self._runner.close()

    async def ask(self, method: Callable[[Any, Unpack[Arguments]], Answer], *arguments: *Arguments) -> Answer:
        """Call a method; when the process has died, open it anew before."""
        if self._in_use and (self._lock.locked() or not self._runner.alive):
            async with self._lock:
                if not self._runner.alive:
                    await self._start_or_close()
        return await self._runner.run(method, *arguments)

    async def _start_or_close(self) -> None:
        try:
            await self._start()
        except BaseException:
            await self._runner.close()
            raise
