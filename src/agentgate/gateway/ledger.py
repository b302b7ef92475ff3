"""The gateway's side of the ledger: single requests, merged into batches, and reports that do not give up.

`lookup` and `claim` fail when the store fails; the stages answer `store_down`. A report of what became of a unit may
not get lost, so `report` repeats it until the store has taken it: the unit stays open meanwhile, and what stays open
is bounded by the slots. Repeating is safe, because a change counts once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import structlog

from agentgate.errors import StoreError
from agentgate.model import Change, Changed, Claim, Claimed, KeyId, Record, RecordState
from agentgate.ports.clock import Clock
from agentgate.ports.store import Store
from agentgate.runtime.batcher import Batcher
from agentgate.runtime.later import Later

log = structlog.get_logger(__name__)

# A store that failed is asked again this soon, doubling up to the maximum: it is our own and local, or about to be.
REPORT_AGAIN_S: Final = 0.05
REPORT_AGAIN_S_MAX: Final = 2.0


class Ledger:
    """Idempotency keys in the store."""

    def __init__(self, store: Store, clock: Clock, gateway: str, epoch: int) -> None:
        self._store = store
        self._clock = clock
        self._gateway = gateway
        self._epoch = epoch
        self._lookups: Batcher[KeyId, Record | None] = Batcher(self._lookup)
        self._claims: Batcher[Claim, Claimed] = Batcher(self._claim)
        self._changes: Batcher[Change, Changed] = Batcher(self._change)
        self._batchers = contextlib.AsyncExitStack()
        self._closing = False

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            for batcher in (self._lookups, self._claims, self._changes):
                await stack.enter_async_context(batcher)
            self._batchers = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        await self._batchers.aclose()

    def lookup(self, key: KeyId) -> Later[Record | None]:
        """The live record of a key."""
        return self._lookups.submit(key)

    def claim(self, claim: Claim) -> Later[Claimed]:
        """Ask for the right to run a key; granted means: on disk."""
        return self._claims.submit(claim)

    def report(self, change: Change) -> Later[Changed]:
        """Say what became of a unit. It comes true when it is on disk; only closing cancels it."""
        done: Later[Changed] = Later()
        self._report(change, done, REPORT_AGAIN_S)
        return done

    async def find_units(self, units: Sequence[str]) -> list[Record | None]:
        """The open records that name these units."""
        return await self._store.find_units(units)

    async def open_records(self, limit: int = 1000) -> list[Record]:
        """All running records, read in pages."""
        found: list[Record] = []
        after: KeyId | None = None
        while page := await self._store.open_records(after, limit):
            found.extend(page)
            after = page[-1].key
        return found

    async def list_records(self, after: KeyId, before: KeyId, state: RecordState | None, limit: int) -> list[Record]:
        """A page of live records between two keys; see `ports.store`."""
        return await self._store.list_records(after, before, state, self._clock.wall(), limit)

    async def sweep(self, limit: int = 1000) -> int:
        """Delete some expired records; returns how many went."""
        return await self._store.sweep(self._clock.wall(), limit)

    def _report(self, change: Change, done: Later[Changed], again_s: float) -> None:
        if self._closing:
            done.cancel()
            return
        try:
            attempt = self._changes.submit(change)
        except StoreError:  # the batcher is full
            self._report_again(change, done, again_s)
            return

        def reported(future: Later[Changed]) -> None:
            if done.done():
                return
            if future.cancelled():
                done.cancel()
            elif (error := future.exception()) is None:
                done.set_result(future.result())
            else:
                log.warning("ledger_report_repeated", error=str(error), change=change.event)
                self._report_again(change, done, again_s)

        attempt.then(reported)

    def _report_again(self, change: Change, done: Later[Changed], again_s: float) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(again_s, self._report, change, done, min(again_s * 2, REPORT_AGAIN_S_MAX))

    async def _lookup(self, keys: Sequence[KeyId]) -> list[Record | None]:
        return await self._store.lookup(keys, self._clock.wall())

    async def _claim(self, claims: Sequence[Claim]) -> list[Claimed]:
        return await self._store.claim(claims, self._gateway, self._epoch, self._clock.wall())

    async def _change(self, changes: Sequence[Change]) -> list[Changed]:
        return await self._store.change(changes, self._clock.wall())
