"""The store in memory: the reference for all others, and the store of simulations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentgate.adapters import records
from agentgate.adapters.dump import Dump
from agentgate.adapters.open_units import OpenUnits
from agentgate.core import expiry
from agentgate.core.expiry import Expiry
from agentgate.core.ledger import LedgerOptions
from agentgate.core.ledger_batch import LedgerBatch
from agentgate.errors import StoreBroke
from agentgate.model import Change, Changed, Claim, Claimed, KeyId, Record, RecordState, RouteSnapshot
from agentgate.ports.store import Lifetime

RECORDS_MAX: Final = 1_000_000  # about 1 GB; a day of 10 keyed calls a second


class MemoryStore:
    """Keeps everything as long as the object lives: closing and opening it again is what a restart is on a disk."""

    def __init__(self, options: LedgerOptions | None = None, *, records_max: int = RECORDS_MAX) -> None:
        self._options = options or LedgerOptions()
        self._records_max = records_max
        self._records: dict[KeyId, Record] = {}
        self._units = OpenUnits()
        self._epochs: dict[str, int] = {}
        self._expiry: Expiry | None = None
        self._secret = ""
        self._routes = RouteSnapshot()
        self._is_open = False

    async def open(self) -> None:
        """Make it usable."""
        self._is_open = True

    async def close(self) -> None:
        """Make it unusable until it is opened again."""
        self._is_open = False

    async def begin(self, gateway: str, new_secret: str, now: float) -> Lifetime:
        """Open a new epoch for this gateway."""
        self._check_open()
        self._expiry = expiry.start(self._expiry, now, self._options.ttl_s)
        self._epochs[gateway] = self._epochs.get(gateway, 0) + 1
        self._secret = self._secret or new_secret
        return Lifetime(epoch=self._epochs[gateway], now=self._expiry.latest, secret=self._secret)

    async def lookup(self, keys: Sequence[KeyId], now: float) -> list[Record | None]:
        """The live records of these keys."""
        self._check_open()
        horizon = self._horizon(now)
        return [expiry.live(self._records.get(key), horizon) for key in keys]

    async def claim(self, claims: Sequence[Claim], gateway: str, epoch: int, now: float) -> list[Claimed]:
        """Open records, or say what stands in the way."""
        batch = self._batch(now)
        answers = [batch.claim(claim, gateway, epoch) for claim in claims]
        self._write(batch)
        return answers

    async def change(self, changes: Sequence[Change], now: float) -> list[Changed]:
        """Apply what became of units."""
        batch = self._batch(now)
        answers = [batch.change(change) for change in changes]
        self._write(batch)
        return answers

    async def find_units(self, units: Sequence[str]) -> list[Record | None]:
        """The open records that name these units."""
        self._check_open()
        keys = [self._units.key_of(unit) for unit in units]
        return [None if key is None else self._records[key] for key in keys]

    async def open_records(self, after: KeyId | None, limit: int) -> list[Record]:
        """Running records in key order."""
        self._check_open()
        running = (key for key, record in self._records.items() if record.state == "running")
        return [self._records[key] for key in sorted(running) if after is None or key > after][:limit]

    async def list_records(
        self, after: KeyId, before: KeyId, state: RecordState | None, now: float, limit: int
    ) -> list[Record]:
        """Live records between two keys, in key order."""
        self._check_open()
        horizon = self._horizon(now)
        found = [
            record
            for key, record in self._records.items()
            if after < key < before and state in (None, record.state) and expiry.live(record, horizon) is not None
        ]
        return [records.light(record) for record in sorted(found, key=lambda record: record.key)[:limit]]

    async def sweep(self, now: float, limit: int) -> int:
        """Delete what has expired, extend what runs."""
        self._check_open()
        horizon = self._horizon(now)
        self._expiry = expiry.note(self._expiry or Expiry(latest=now), now)
        due = [record for record in self._records.values() if expiry.is_due(record, horizon)]
        for record in due:
            if record.state == "running":
                self._keep(record.key, expiry.extended(record, now, self._options.ttl_s))
        settled = sorted((record for record in due if record.state != "running"), key=expiry.sweep_order)[:limit]
        for record in settled:
            self._keep(record.key, None)
        return len(settled)

    async def save_routes(self, snapshot: RouteSnapshot) -> None:
        """Keep the newest route snapshot."""
        self._check_open()
        if snapshot.version >= self._routes.version:
            self._routes = snapshot

    async def load_routes(self) -> RouteSnapshot:
        """The stored snapshot."""
        self._check_open()
        return self._routes

    async def dump(self) -> Dump:
        """Everything that is stored, in order; for comparing stores."""
        return Dump(
            records=[self._records[key] for key in sorted(self._records)],
            units=self._units.names(),
            epochs=dict(sorted(self._epochs.items())),
            expiry=self._expiry,
            secret=self._secret,
            routes=self._routes,
        )

    def _horizon(self, now: float) -> float:
        return now if self._expiry is None else expiry.horizon(self._expiry, now)

    def _batch(self, now: float) -> LedgerBatch:
        self._check_open()
        return LedgerBatch(self._records, now=now, horizon=self._horizon(now), options=self._options)

    def _write(self, batch: LedgerBatch) -> None:
        """Keep what a batch decided, all of it or nothing."""
        texts = [records.encode(record) for record in batch.written.values() if record is not None]
        stored = {record.key: record for record in records.decode(f"[{','.join(texts)}]")}
        if len(self._records) + sum(key not in self._records for key in stored) > self._records_max:
            raise StoreBroke(f"the store in memory is full at {self._records_max} records: use `store: sqlite`")
        for key in batch.written:
            self._keep(key, stored.get(key))

    def _keep(self, key: KeyId, record: Record | None) -> None:
        self._units.keep(self._records.pop(key, None), record)
        if record is not None:
            self._records[key] = record

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreBroke("the store is closed")
