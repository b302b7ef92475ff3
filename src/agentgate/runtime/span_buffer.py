"""Keeps finished spans until they are written: taking one costs about a microsecond and never waits.

They are written when the first has waited `flush_s` or when `rows` are there; while one write is under way the next
collects. The buffer is bounded. At the bound successes of calls without a key go first, then new ones are refused:
what an operator looks for in a bad hour are errors and effects. Every span that goes unwritten is counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

import structlog

from agentgate.errors import StoreError
from agentgate.model import DEFAULT_TENANT, Span, in_order, unfolded
from agentgate.ports.clock import Clock
from agentgate.ports.store import SpanStore
from agentgate.runtime.service import Service

log = structlog.get_logger(__name__)

FLUSH_S: Final = 0.02  # what a crash may cost, and what a dashboard does not notice (DESIGN 6)
ROWS: Final = 256  # a write of 64 costs a third more a span
ROWS_MAX: Final = 256  # a query reads whole writes
WAITING_MAX: Final = 16_384  # about a second at saturation, 16 MB
FAILED_S: Final = 1.0  # a disk that is full is not asked 50 times a second


@dataclass(frozen=True, kw_only=True)
class SpanBufferOptions:
    """When spans are written, and how many may wait for it."""

    flush_s: float = FLUSH_S
    rows: int = ROWS
    waiting_max: int = WAITING_MAX

    def __post_init__(self) -> None:
        if not self.flush_s > 0:
            raise ValueError(f"flush_s must be above 0, not {self.flush_s}")
        if not 1 <= self.rows <= self.waiting_max:
            raise ValueError(f"rows must be between 1 and waiting_max ({self.waiting_max}), not {self.rows}")


class SpanBuffer(Service):
    """The sink of all spans. Leaving it writes what is left. Store failures are logged and counted, never raised."""

    def __init__(self, store: SpanStore, clock: Clock, options: SpanBufferOptions | None = None) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        self._options = options or SpanBufferOptions()
        self._plain: deque[Span] = deque()  # successes of calls without a key
        self._precious: deque[Span] = deque()
        self._under_way = 0  # spans of the round that is being written
        self._flushing = False
        self._timer: asyncio.TimerHandle | None = None
        self._leave_alone_until = 0.0
        self._askers: list[asyncio.Future[None]] = []
        self.dropped = 0
        self.written = 0

    def record(self, span: Span) -> None:
        """Take a finished span."""
        waiting = len(self._plain) + len(self._precious) + self._under_way
        if waiting >= self._options.waiting_max:
            self.dropped += 1
            if not self._plain:
                return
            self._plain.popleft()
        self._keep(span)
        if self._flushing:
            return
        if waiting + 1 == self._options.rows:
            self._flush_now()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._options.flush_s, self._flush_now)

    @property
    def waiting(self) -> int:
        """How many spans are not written yet."""
        return len(self._plain) + len(self._precious) + self._under_way

    async def chain(self, trace_or_key: str, limit: int = 1_000, tenant: str = DEFAULT_TENANT) -> list[Span]:
        """The tenant's spans of one trace, or of the traces in which a key occurs, with everything recorded so far."""
        if self._clock.now() >= self._leave_alone_until:
            await self._flushed()
        kept = await self._store.chain(trace_or_key, limit, tenant)
        return sorted((span for one in kept for span in unfolded(one)), key=in_order)[:limit]

    async def _stop(self) -> None:
        self._leave_alone_until = 0.0
        await self._flushed()
        if self._timer is not None:
            self._timer.cancel()
        if self.waiting:
            self.dropped += self.waiting
            log.warning("spans_lost_at_stop", count=self.waiting)
        await super()._stop()

    async def _flushed(self) -> None:
        """Wait until everything recorded so far has been written, or could not be."""
        asker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._askers.append(asker)
        self._flush_now()
        await asker

    def _flush_now(self) -> None:
        """Start writing, unless that is under way or the store is to be left alone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushing:
            return
        wait_s = self._leave_alone_until - self._clock.now()
        if wait_s > 0:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._flush_now)
            return
        self._flushing = True
        self._spawn(self._flush())

    async def _flush(self) -> None:
        """Write in rounds: each takes all there is, and answers whoever asked before it began."""
        askers: list[asyncio.Future[None]] = []
        try:
            while (self.waiting or self._askers) and self._clock.now() >= self._leave_alone_until:
                askers, self._askers = self._askers, []
                await self._write_round()
                _answer(askers)
        finally:
            self._flushing = False
            self.dropped += self._under_way  # only when this task was cancelled is any left
            self._under_way = 0
            _answer([*askers, *self._askers])
            self._askers.clear()
        if self.waiting:
            self._flush_now()

    async def _write_round(self) -> None:
        spans = [*self._precious, *self._plain]
        self._precious.clear()
        self._plain.clear()
        self._under_way = len(spans)
        for start in range(0, len(spans), ROWS_MAX):
            part = spans[start : start + ROWS_MAX]
            try:
                await self._store.write(part)
            except StoreError as error:
                log.warning("spans_not_written", error=str(error), waiting=self.waiting)
                self._leave_alone_until = self._clock.now() + FAILED_S
                self._under_way = 0
                for span in spans[start:]:
                    self._keep(span)
                return
            self.written += len(part)
            self._under_way -= len(part)

    def _keep(self, span: Span) -> None:
        (self._precious if span.key or span.status != "done" else self._plain).append(span)


def _answer(askers: list[asyncio.Future[None]]) -> None:
    for asker in askers:
        if not asker.done():
            asker.set_result(None)
