"""Blocks of spans in SQLite files, one a day. Synchronous: it runs wherever a `Runner` puts it.

Retention is deleting files. Spans need not survive a crash of the machine, so commits do not wait for the disk.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from agentgate.adapters.sqlite import statements
from agentgate.adapters.sqlite.database import Database, FileBroken
from agentgate.errors import StoreBroke

SQL: Final = statements.load("spans.sql")
DAY_S: Final = 86_400
DAY_ZERO: Final = dt.date(1970, 1, 1).toordinal()
PAGE_BYTES: Final = 16_384  # blocks are written whole and in order: fewer, larger pages cost a third less
SUFFIX: Final = ".sqlite"
PREFIX: Final = "spans-"
BROKEN: Final = "broken-spans"  # the name of a damaged file that was put aside


class SpanFiles:
    """One directory. Days are counted from the epoch; names are as `span_store` encodes them."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._open: dict[int, Database] = {}  # as many as there are days of retention

    def open(self) -> None:
        """Make the directory, for the owner's eyes only."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreBroke(f"{self._directory}: {error}") from error

    def close(self) -> None:
        """Let go of all files."""
        while self._open:
            self._open.popitem()[1].close()

    def write(self, day: int, spans: str, names: str) -> bool:
        """Append a block to the file of a day; whether a damaged file had to make room for it."""
        try:
            self._append(day, spans, names)
        except FileBroken:
            self._put_aside(day)
            self._append(day, spans, names)
            return True
        return False

    def read(self, names: Sequence[str], limit: int) -> list[str]:
        """The newest blocks in which one of the names may occur."""
        blocks: list[str] = []
        for day in sorted(self._days(), reverse=True):
            if len(blocks) >= limit or not names:
                break
            try:
                row = self._database(day).row(SQL["read_blocks"], " OR ".join(names), limit - len(blocks))
            except FileBroken:
                self._put_aside(day)
                continue
            assert row is not None  # an aggregate always has one
            blocks += msgspec.json.decode(row[0], type=list[str])
        return blocks

    def sweep(self, first_kept: int) -> int:
        """Delete the files of all days before this one; returns how many."""
        gone = [day for day in self._days() if day < first_kept]
        for day in gone:
            if (database := self._open.pop(day, None)) is not None:
                database.close()
            path = self._path(day)
            for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
                file.unlink(missing_ok=True)
        return len(gone)

    def _append(self, day: int, spans: str, names: str) -> None:
        database = self._database(day)
        with database.transaction():
            database.write(SQL["insert_block"], (spans,))
            database.write(SQL["insert_names"], (names,))

    def _put_aside(self, day: int) -> None:
        """Keep a damaged file for whoever wants to look at it, the last one only; a new one takes its place."""
        if (database := self._open.pop(day, None)) is not None:
            with contextlib.suppress(StoreBroke):
                database.close()
        path = self._path(day)
        try:
            path.replace(self._directory / BROKEN)
            for file in (path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
                file.unlink(missing_ok=True)
        except OSError as error:
            raise StoreBroke(f"{path} is damaged and cannot be put aside: {error}") from error

    def _days(self) -> list[int]:
        """The days of which there is a file."""
        days = []
        for file in self._directory.glob(f"{PREFIX}*{SUFFIX}"):
            with contextlib.suppress(ValueError):  # not one of ours
                date = dt.date.fromisoformat(file.name.removeprefix(PREFIX).removesuffix(SUFFIX))
                days.append(date.toordinal() - DAY_ZERO)
        return days

    def _database(self, day: int) -> Database:
        database = self._open.get(day)
        if database is None:
            database = Database(
                self._path(day), statements.migrations("spans"), synchronous="NORMAL", page_bytes=PAGE_BYTES
            )
            database.open()
            self._open[day] = database
        return database

    def _path(self, day: int) -> Path:
        return self._directory / f"{PREFIX}{dt.date.fromordinal(DAY_ZERO + day).isoformat()}{SUFFIX}"
