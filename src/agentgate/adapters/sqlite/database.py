"""A SQLite file with a schema: opened, brought up to date, written in transactions. Synchronous; used by one thread."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from agentgate.errors import StoreBadInput, StoreBroke

Synchronous = Literal["FULL", "NORMAL"]

BUSY_S: Final = 5.0  # an operator's shell or a backup may hold the file for a moment
PAGE_BYTES: Final = 4_096  # right for rows that are changed one by one all over the file
CACHE_KIB: Final = 32_768  # the index of some hundred thousand keys
SQLITE_MIN: Final = (3, 33)  # UPDATE ... FROM, and 32 766 parameters

# What no repetition can help, as SQLite and Python say it.
BAD_INPUT: Final = (sqlite3.DataError, sqlite3.InterfaceError, UnicodeError, OverflowError)


class FileBroken(StoreBroke):
    """The file is damaged, or none of SQLite's: nothing will be read from it or written to it any more."""


class Database:
    """One connection to one file. Every error comes out as `StoreBroke` or `StoreBadInput`."""

    def __init__(
        self, path: Path, migrations: Sequence[str], *, synchronous: Synchronous, page_bytes: int = PAGE_BYTES
    ) -> None:
        self._path = path
        self._migrations = migrations
        self._synchronous = synchronous
        self._page_bytes = page_bytes
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        """Connect, for the owner's eyes only, and bring the schema up to date."""
        with self._translated():
            if sqlite3.sqlite_version_info < SQLITE_MIN:
                raise StoreBroke(f"SQLite {sqlite3.sqlite_version} is too old: Python needs one from 3.33 on")
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # An existing file is not opened here: closing it would drop the locks that SQLite has on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            self._path.chmod(0o600)  # SQLite gives its -wal and -shm files the same mode
            self._connection = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None)
            self._set_up(self._connection)
            self._migrate(self._connection)

    def close(self) -> None:
        """Write the log back into the file and let go of it; safe to call twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with self._translated():
                connection.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside, or none of them."""
        connection = self._connected()
        with self._translated():
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def row(self, statement: str, *parameters: Any) -> tuple[Any, ...] | None:
        """The first row of a query."""
        with self._translated():
            row: tuple[Any, ...] | None = self._connected().execute(statement, parameters).fetchone()
        return row

    def write(self, statement: str, parameters: Sequence[Any]) -> int:
        """Run a statement that changes something; returns how many rows it changed."""
        with self._translated():
            return self._connected().execute(statement, parameters).rowcount

    def _set_up(self, connection: sqlite3.Connection) -> None:
        connection.execute(f"PRAGMA page_size = {self._page_bytes}")  # counts for a new file only
        [mode] = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StoreBroke(f"{self._path} cannot be used in WAL mode: is it on a network file system?")
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")

    def _migrate(self, connection: sqlite3.Connection) -> None:
        """Run the missing migrations, each in a transaction of its own."""
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if version > len(self._migrations):
            raise StoreBroke(f"{self._path} was made by a newer AgentGate (schema {version}): use that one")
        for number, script in enumerate(self._migrations[version:], version + 1):
            try:
                connection.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StoreBroke("the store is closed")
        return self._connection

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BAD_INPUT as error:
            raise StoreBadInput(f"the request cannot be stored: {error}") from error
        except (sqlite3.Error, OSError) as error:
            if type(error) is sqlite3.DatabaseError:  # what is wrong with the moment has subclasses of its own
                raise FileBroken(f"{self._path}: {error}") from error
            raise StoreBroke(f"{self._path}: {error}") from error
