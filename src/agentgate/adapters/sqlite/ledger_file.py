"""The ledger in one SQLite file. Synchronous: it runs wherever a `Runner` puts it, always on the same thread.

A batch is one transaction: read the records of all keys, let the core decide, write back what changed. Open units
are found through memory: the file belongs to this process alone, and what is open is read when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from agentgate.adapters import records
from agentgate.adapters.dump import Dump
from agentgate.adapters.open_units import OpenUnits
from agentgate.adapters.sqlite import statements
from agentgate.adapters.sqlite.database import Database
from agentgate.core import expiry
from agentgate.core.expiry import Expiry
from agentgate.core.ledger import OPEN, LedgerOptions
from agentgate.core.ledger_batch import LedgerBatch
from agentgate.model import Change, Changed, Claim, Claimed, KeyId, Record, RecordState, RouteSnapshot
from agentgate.ports.store import Lifetime

SQL: Final = statements.load("ledger.sql")
BEFORE_ALL: Final = KeyId("", "", "", "", "", "")
ROWS_MAX: Final = 1_000  # rows of one statement: 9 values each, of the 32 766 that SQLite takes

Request = TypeVar("Request", Claim, Change)
Answer = TypeVar("Answer")
Row = TypeVar("Row", bound=tuple[Any, ...])
Fact = TypeVar("Fact")


class _Stored(NamedTuple):
    """What the file holds for some keys."""

    records: dict[KeyId, Record]
    ids: dict[KeyId, int]


class LedgerFile:
    """Everything the store port asks, one method each; `store.SqliteStore` is the asynchronous face of it.

    Arguments and answers are of types that can cross a process boundary (`runtime.signature`).
    """

    def __init__(self, path: str, options: LedgerOptions) -> None:
        self._options = options
        self._database = Database(Path(path), statements.migrations("ledger"), synchronous="FULL")
        self._units = OpenUnits()
        self._expiry: Expiry | None = None

    def open(self) -> None:
        """Open the file, which is this gateway's, and learn what is open in it."""
        try:
            self._database.open()
            self._expiry = self._fact("expiry", Expiry)
            self._units = OpenUnits(self._read(SQL["read_open"]))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def begin(self, gateway: str, new_secret: str, now: float) -> Lifetime:
        """Open a new epoch."""
        started = expiry.start(self._expiry, now, self._options.ttl_s)
        with self._database.transaction():
            self._database.write(SQL["raise_epoch"], (gateway,))
            self._set_fact("expiry", started)
            secret = self._fact("secret", str)
            if secret is None:
                secret = new_secret
                self._set_fact("secret", secret)
            epoch = self._epochs()[gateway]
        self._expiry = started
        return Lifetime(epoch=epoch, now=started.latest, secret=secret)

    def lookup(self, keys: Sequence[KeyId], now: float) -> list[Record | None]:
        """The live records of these keys."""
        stored = self._stored(keys).records
        horizon = self._horizon(now)
        return [expiry.live(stored.get(key), horizon) for key in keys]

    def claim(self, claims: Sequence[Claim], gateway: str, epoch: int, now: float) -> list[Claimed]:
        """Open records, or say what stands in the way."""
        return self._apply(claims, now, lambda batch, claim: batch.claim(claim, gateway, epoch))

    def change(self, changes: Sequence[Change], now: float) -> list[Changed]:
        """Apply what became of units."""
        return self._apply(changes, now, LedgerBatch.change)

    def find_units(self, units: Sequence[str]) -> list[Record | None]:
        """The open records that name these units."""
        keys = [self._units.key_of(unit) for unit in units]
        stored = self._stored([key for key in keys if key is not None]).records
        return [None if key is None else stored[key] for key in keys]

    def open_records(self, after: KeyId | None, limit: int) -> list[Record]:
        """Running records in key order."""
        return self._read(SQL["read_running"], *(after or BEFORE_ALL), limit)

    def list_records(
        self, after: KeyId, before: KeyId, state: RecordState | None, now: float, limit: int
    ) -> list[Record]:
        """Live records between two keys, in key order."""
        if state in OPEN:
            return self._read(SQL["list_open"], *after, *before, state, limit)
        bounds = (*after, *before, self._horizon(now))
        if state == "failed":
            return self._read(SQL["list_failed"], *bounds, limit)
        return self._read(SQL["list_records"], *bounds, state, state, limit)

    def sweep(self, now: float, limit: int) -> int:
        """Delete what has expired, extend what runs."""
        horizon = self._horizon(now)
        noted = expiry.note(self._expiry or Expiry(latest=now), now)
        with self._database.transaction():
            self._set_fact("expiry", noted)
            due = self._keyed(self._database.row(SQL["read_running_due"], horizon))
            extended = [expiry.extended(record, now, self._options.ttl_s) for record in due.records.values()]
            self._update([(due.ids[record.key], record) for record in extended])
            gone = self._database.write(SQL["delete_due"], (horizon, limit))
        self._expiry = noted
        return gone

    def save_routes(self, snapshot: RouteSnapshot) -> None:
        """Keep the newest route snapshot."""
        with self._database.transaction():
            if snapshot.version >= self.load_routes().version:
                self._set_fact("routes", snapshot)

    def load_routes(self) -> RouteSnapshot:
        """The stored snapshot."""
        return self._fact("routes", RouteSnapshot) or RouteSnapshot()

    def dump(self) -> Dump:
        """Everything that is stored, in order; for comparing stores."""
        return Dump(
            records=self._read(SQL["read_all"]),
            units=self._units.names(),
            epochs=self._epochs(),
            expiry=self._fact("expiry", Expiry),
            secret=self._fact("secret", str) or "",
            routes=self.load_routes(),
        )

    def _apply(
        self, requests: Sequence[Request], now: float, decide: Callable[[LedgerBatch, Request], Answer]
    ) -> list[Answer]:
        """One batch, one transaction."""
        with self._database.transaction():
            stored = self._stored({request.key for request in requests})
            batch = LedgerBatch(stored.records, now=now, horizon=self._horizon(now), options=self._options)
            answers = [decide(batch, request) for request in requests]
            self._write(batch.written, stored.ids)
        for key, record in batch.written.items():
            self._units.keep(stored.records.get(key), record)
        return answers

    def _write(self, written: Mapping[KeyId, Record | None], ids: Mapping[KeyId, int]) -> None:
        """Write what a batch decided, in key order."""
        kept = [record for _, record in sorted(written.items()) if record is not None]
        new = [(*record.key, *self._columns(record)) for record in kept if record.key not in ids]
        for rows in _parts(new):
            self._database.write(statements.with_rows(SQL["insert_records"], len(rows)), _flat(rows))
        self._update([(ids[record.key], record) for record in kept if record.key in ids])
        gone = [ids[key] for key, record in written.items() if record is None and key in ids]
        if gone:
            self._database.write(SQL["delete_records"], (_json(gone),))

    def _update(self, changed: Iterable[tuple[int, Record]]) -> None:
        for rows in _parts([(id_, *self._columns(record)) for id_, record in changed]):
            self._database.write(statements.with_rows(SQL["update_records"], len(rows)), _flat(rows))

    def _columns(self, record: Record) -> tuple[str, float, str]:
        return record.state, record.expires_at, records.encode(record)

    def _stored(self, keys: Collection[KeyId]) -> _Stored:
        return self._keyed(self._database.row(SQL["read_records"], _json(list(keys)))) if keys else _Stored({}, {})

    def _keyed(self, row: tuple[Any, ...] | None) -> _Stored:
        """Records and ids by key."""
        assert row is not None  # an aggregate always has one
        found = records.decode(row[0])
        ids: list[int] = msgspec.json.decode(row[1])
        keys = [record.key for record in found]
        return _Stored(dict(zip(keys, found, strict=True)), dict(zip(keys, ids, strict=True)))

    def _read(self, statement: str, *parameters: Any) -> list[Record]:
        row = self._database.row(statement, *parameters)
        assert row is not None
        return records.decode(row[0])

    def _epochs(self) -> dict[str, int]:
        row = self._database.row(SQL["read_epochs"])
        assert row is not None
        return dict(sorted(msgspec.json.decode(row[0], type=dict[str, int]).items()))

    def _fact(self, name: str, kind: type[Fact]) -> Fact | None:
        row = self._database.row(SQL["read_fact"], name)
        return None if row is None else msgspec.json.decode(row[0], type=kind)

    def _set_fact(self, name: str, value: object) -> None:
        self._database.write(SQL["write_fact"], (name, _json(value)))

    def _horizon(self, now: float) -> float:
        return now if self._expiry is None else expiry.horizon(self._expiry, now)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _parts(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows in statements of a size that SQLite takes."""
    for start in range(0, len(rows), ROWS_MAX):
        yield rows[start : start + ROWS_MAX]


def _flat(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    return [value for row in rows for value in row]
