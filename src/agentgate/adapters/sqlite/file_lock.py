"""One gateway per store file, held by the operating system: it is let go when its processes die, however they die.

The gateway takes it and shares the descriptor with the process that has the file open. So nobody else can take the
file while that process is replaced, nor while it still finishes a transaction after the gateway was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from agentgate.errors import StoreBroke

# A gateway that was killed leaves a process of the store that ends as soon as it notices, within one transaction.
WAIT_S: Final = 1.0
AGAIN_S: Final = 0.02


class FileLock:
    """A lock on a file beside the store (locking the store itself would break SQLite's own locks)."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._file: int | None = None

    @property
    def descriptor(self) -> int:
        """The open file that is the lock; whoever has it open holds the lock."""
        if self._file is None:
            raise StoreBroke(f"{self._store} is not open")
        return self._file

    async def take(self) -> None:
        """Take it, or raise `StoreBroke` naming the process that holds it."""
        try:
            self._store.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(f"{self._store}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreBroke(f"{self._store}: {error}") from error
        for _ in range(int(WAIT_S / AGAIN_S) + 1):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(AGAIN_S)
            else:
                os.ftruncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
                self._file = file
                return
        holder = os.read(file, 32).decode(errors="replace").strip() or "unknown"
        os.close(file)
        raise StoreBroke(
            f"{self._store} is in use by another gateway (process {holder}): stop that one, or give this one a store"
            f" of its own"
        )

    def release(self) -> None:
        """Let go of it; safe to call twice. The file stays: removing it would let two processes lock two files."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None
