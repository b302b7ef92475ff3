"""Deletes what is past its time, a little at once, so that nothing else waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from agentgate.errors import StoreError
from agentgate.ports.clock import Clock
from agentgate.ports.store import SpanStore, Store
from agentgate.runtime.service import Service

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class RetentionOptions:
    """How often to look, and how much to delete in one go.

    - `interval_s`, 60: records live a day, so a minute more is nothing.
    - `batch`, 1 000: a few milliseconds of the store's time.
    """

    interval_s: float = 60.0
    batch: int = 1000

    def __post_init__(self) -> None:
        if not self.interval_s > 0:
            raise ValueError(f"interval_s must be above 0, not {self.interval_s}")
        if self.batch < 1:
            raise ValueError(f"batch must be at least 1, not {self.batch}")


class Retention(Service):
    """Sweeps the ledger and the days of spans as long as it is entered."""

    def __init__(self, store: Store, spans: SpanStore, clock: Clock, options: RetentionOptions) -> None:
        super().__init__()
        self._store = store
        self._spans = spans
        self._clock = clock
        self._options = options

    async def _start(self) -> None:
        self._spawn(self._run())

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._options.interval_s)
            try:
                await self.sweep()
            except StoreError as error:
                log.warning("sweep_failed", error=str(error))

    async def sweep(self) -> int:
        """Delete everything that is due now; returns how many records went."""
        now = self._clock.wall()
        gone = 0
        while swept := await self._store.sweep(now, self._options.batch):
            gone += swept
        await self._spans.sweep(now)
        return gone
