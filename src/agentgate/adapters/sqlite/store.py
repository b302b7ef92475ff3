"""The store on disk: the asynchronous face of `LedgerFile`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from agentgate.adapters.dump import Dump
from agentgate.adapters.sqlite.file_lock import FileLock
from agentgate.adapters.sqlite.ledger_file import LedgerFile
from agentgate.adapters.sqlite.reopening import Reopening
from agentgate.core.ledger import LedgerOptions
from agentgate.model import Change, Changed, Claim, Claimed, KeyId, Record, RecordState, RouteSnapshot
from agentgate.ports.store import Lifetime
from agentgate.runtime.runner import Runner

Arguments = TypeVarTuple("Arguments")
Answer = TypeVar("Answer")


class SqliteStore:
    """Keeps everything in one SQLite file, for one gateway process; what a method answered is on disk (FULL)."""

    def __init__(self, path: Path, runner: Runner, options: LedgerOptions | None = None) -> None:
        self._path = path
        self._options = options or LedgerOptions()
        self._runner = runner
        self._file = Reopening(runner, self._start)
        self._lock = FileLock(path)

    async def open(self) -> None:
        """Take the file for this process and bring its schema up to date."""
        await self._lock.take()
        try:
            await self._file.open()
        except BaseException:
            self._lock.release()
            raise

    async def close(self) -> None:
        """Let go of the file."""
        try:
            await self._file.close(LedgerFile.close)
        finally:
            self._lock.release()

    async def begin(self, gateway: str, new_secret: str, now: float) -> Lifetime:
        """Open a new epoch for this gateway."""
        return await self._ask(LedgerFile.begin, gateway, new_secret, now)

    async def lookup(self, keys: Sequence[KeyId], now: float) -> list[Record | None]:
        """The live records of these keys."""
        return await self._ask(LedgerFile.lookup, keys, now)

    async def claim(self, claims: Sequence[Claim], gateway: str, epoch: int, now: float) -> list[Claimed]:
        """Open records, or say what stands in the way."""
        return await self._ask(LedgerFile.claim, claims, gateway, epoch, now)

    async def change(self, changes: Sequence[Change], now: float) -> list[Changed]:
        """Apply what became of units."""
        return await self._ask(LedgerFile.change, changes, now)

    async def find_units(self, units: Sequence[str]) -> list[Record | None]:
        """The open records that name these units."""
        return await self._ask(LedgerFile.find_units, units)

    async def open_records(self, after: KeyId | None, limit: int) -> list[Record]:
        """Running records in key order."""
        return await self._ask(LedgerFile.open_records, after, limit)

    async def list_records(
        self, after: KeyId, before: KeyId, state: RecordState | None, now: float, limit: int
    ) -> list[Record]:
        """Live records between two keys, in key order."""
        return await self._ask(LedgerFile.list_records, after, before, state, now, limit)

    async def sweep(self, now: float, limit: int) -> int:
        """Delete what has expired, extend what runs."""
        return await self._ask(LedgerFile.sweep, now, limit)

    async def save_routes(self, snapshot: RouteSnapshot) -> None:
        """Keep the newest route snapshot."""
        await self._ask(LedgerFile.save_routes, snapshot)

    async def load_routes(self) -> RouteSnapshot:
        """The stored snapshot."""
        return await self._ask(LedgerFile.load_routes)

    async def dump(self) -> Dump:
        """Everything that is stored, in order; for comparing stores."""
        return await self._ask(LedgerFile.dump)

    async def _ask(self, method: Callable[[LedgerFile, *Arguments], Answer], *arguments: *Arguments) -> Answer:
        return await self._file.ask(method, *arguments)

    async def _start(self) -> None:
        self._runner.share(self._lock.descriptor)
        await self._runner.start(LedgerFile, str(self._path), self._options)
        await self._runner.run(LedgerFile.open)
