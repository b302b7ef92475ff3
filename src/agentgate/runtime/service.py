"""The shape of everything long-lived: entering means started, leaving means fully stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

import structlog

log = structlog.get_logger(__name__)


class Service:
    """An async context manager that owns a TaskGroup; no task of a service outlives it.

    Subclasses override `_start` (ready when it returns) and `_stop` (ask the tasks to end; the default cancels them).
    What they are made of runs in tasks started with `_spawn`: one that raises ends the service and whoever entered it,
    as in any TaskGroup. What they are asked for runs in tasks started with `_task`: one that raises is logged, and the
    service goes on for the others. Enter it once; stopping is by leaving.
    """

    def __init__(self) -> None:
        self._tasks = asyncio.TaskGroup()
        self._loop: asyncio.AbstractEventLoop
        self._running: set[asyncio.Task[None]] = set()
        self._requests: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._tasks.__aenter__()
        try:
            await self._start()
        except BaseException as error:
            await self._cancel()
            await self._leave(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stop()
        except BaseException:
            await self._cancel()
            raise
        finally:
            await self._leave(error)

    async def _start(self) -> None:
        """Become ready."""

    async def _stop(self) -> None:
        """Bring the tasks to their end; they are awaited afterwards."""
        await self._cancel()

    async def _leave(self, error: BaseException | None) -> None:
        """Wait for the tasks. An error from inside comes out as it is; the group would wrap it in a group of one."""
        try:
            if isinstance(error, asyncio.CancelledError):  # the group has to know: it may have been its own doing
                await self._tasks.__aexit__(type(error), error, error.__traceback__)
            else:
                await self._tasks.__aexit__(None, None, None)
        finally:
            while self._requests:
                await asyncio.wait(self._requests)

    async def _cancel(self) -> None:
        for task in (*self._running, *self._requests):
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as long as the service lives at most."""
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run one of many short coroutines, which somebody may cancel; outside of the group it costs half."""
        task = self._loop.create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("request_failed_inside", exc_info=error)
