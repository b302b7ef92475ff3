"""What the agents did to the world: one row an effect, in a real file.

Nothing here prevents a second row for the same thing: no UNIQUE, no look before the write. That an effect happens once
is the gate's doing, and whoever counts the rows afterwards sees whether it did.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final

PATH: Final = Path(os.environ.get("SUPPORT_EFFECTS", "effects.sqlite"))

_TABLE = """
CREATE TABLE IF NOT EXISTS effects (
    at REAL NOT NULL, agent TEXT NOT NULL, pid INTEGER NOT NULL,
    what TEXT NOT NULL, order_id TEXT NOT NULL, sku TEXT NOT NULL, n INTEGER NOT NULL, detail TEXT NOT NULL
)
"""


class Effects:
    """The file, as one agent sees it. It waits for other writers, never for ever."""

    def __init__(self, agent: str, path: Path = PATH) -> None:
        self._agent = agent
        self._path = path

    async def append(self, what: str, order_id: str, detail: str = "", *, sku: str = "", n: int = 0) -> None:
        """Do it: from here on it has happened."""
        await asyncio.to_thread(self.append_now, what, order_id, detail, sku=sku, n=n)

    def append_now(self, what: str, order_id: str, detail: str = "", *, sku: str = "", n: int = 0) -> None:
        """As `append`, for handlers that are not async."""
        row = (time.time(), self._agent, os.getpid(), what, order_id, sku, n, detail)
        self._run("INSERT INTO effects VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    async def find(self, what: str, order_id: str) -> str | None:
        """The detail of an effect, or None if it did not happen."""
        sql = "SELECT detail FROM effects WHERE what = ? AND order_id = ?"
        rows = await asyncio.to_thread(self._run, sql, (what, order_id))
        return str(rows[0][0]) if rows else None

    async def total(self, what: str, sku: str) -> int:
        """How many pieces of one product this effect has moved so far."""
        sql = "SELECT coalesce(sum(n), 0) FROM effects WHERE what = ? AND sku = ?"
        ((pieces,),) = await asyncio.to_thread(self._run, sql, (what, sku))
        return int(pieces)

    def _run(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path, timeout=10, isolation_level=None)) as file:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute(_TABLE)
            return file.execute(sql, values).fetchall()
