"""Keeps the newest route snapshot in the store, without writing for every change.

Changes are collected for a while and written together; when somebody waits until they are stored, for a shorter one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final

import structlog

from agentgate.errors import StoreBroke, StoreError
from agentgate.model import RouteSnapshot
from agentgate.runtime.later import Later
from agentgate.runtime.service import Service

Save = Callable[[RouteSnapshot], Awaitable[None]]
Load = Callable[[], Awaitable[RouteSnapshot]]

RETRY_S: Final = 2.0  # a store that fails is asked again, slowly: the snapshot matters at the next start only
WAITED_FOR_S: Final = 0.02  # of collecting while somebody waits: a wave of those is some writes a second, not one each
PATIENCE_S: Final = 5.0  # of whoever waits, with a store that does not answer
LAST_SAVE_S: Final = 2.0  # how long the last save may hold up the end

log = structlog.get_logger("agentgate.directory")


class Saver(Service):
    """Saves some time after the first change, so that a wave of registrations is one write; and once at the end."""

    def __init__(self, snapshot: Callable[[], RouteSnapshot], save: Save, delay_s: float) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._save = save
        self._delay_s = delay_s
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()  # somebody waits
        self._next: Later[None] = Later()  # the end of the save that has what is changed now
        self._latest: Later[None] = Later()  # the end of the one before that, which may be under way
        self._latest.set_result(None)
        self.failures = 0

    def changed(self) -> None:
        """There is something new to save."""
        self._changed.set()

    async def save_now(self) -> None:
        """Return when everything up to now is stored; raises `StoreError`, and goes on trying by itself."""
        end = self._latest
        if self._changed.is_set():
            self._wanted.set()
            end = self._next
        try:
            async with asyncio.timeout(PATIENCE_S):
                await end
        except TimeoutError:
            raise StoreBroke(f"the store has not answered within {PATIENCE_S:g} s") from None

    async def _start(self) -> None:
        self._spawn(self._run())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Save what has changed since the last time; a store that hangs does not hold up the end."""
        await super().__aexit__(kind, error, trace)
        if not self._changed.is_set():
            return
        try:
            async with asyncio.timeout(LAST_SAVE_S):
                await self._save_once()
        except TimeoutError:
            log.warning("routes_not_saved", reason="the store did not answer in time")

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            await self._collect(self._delay_s)
            if not await self._save_once():
                await self._collect(RETRY_S)

    async def _collect(self, delay_s: float) -> None:
        """Let so much time pass, or less if somebody waits."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._wanted.wait()
                await asyncio.sleep(WAITED_FOR_S)

    async def _save_once(self) -> bool:
        self._changed.clear()
        self._wanted.clear()
        end, self._next = self._next, Later()
        self._latest = end
        try:
            await self._save(self._snapshot())
        except StoreError as error:
            self._changed.set()
            self.failures += 1
            log.warning("routes_not_saved", reason=str(error))
            end.set_exception(error)
            return False
        except asyncio.CancelledError:
            self._changed.set()  # nobody knows whether it arrived, so it is saved again
            end.set_exception(StoreBroke("the gate stopped while it was stored"))
            raise
        end.set_result(None)
        return True
