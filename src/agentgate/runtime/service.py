"""The shape of everything long-lived: entering means started, leaving means fully stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self


class Service:
    """An async context manager that owns a TaskGroup; no task of a service outlives it.

    Subclasses override `_start` (ready when it returns) and `_stop` (ask the tasks to end; the default cancels them)
    and start tasks with `_spawn`. A task that raises ends the service and whoever entered it, as in any TaskGroup.
    Enter it once; stopping is by leaving.
    """

    def __init__(self) -> None:
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
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
        if isinstance(error, asyncio.CancelledError):  # the group has to know: it may have been its own doing
            await self._tasks.__aexit__(type(error), error, error.__traceback__)
        else:
            await self._tasks.__aexit__(None, None, None)

    async def _cancel(self) -> None:
        for task in self._running:
            task.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine as long as the service lives at most."""
        self._own(self._tasks.create_task(work))

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """The same, for whoever may have to cancel it before."""
        task = self._tasks.create_task(work)
        self._own(task)
        return task

    def _own(self, task: asyncio.Task[None]) -> None:
        self._running.add(task)
        task.add_done_callback(self._running.discard)
