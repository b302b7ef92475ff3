"""One process per store file, held by the operating system: it is let go when the process dies, however it dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from agentgate.errors import StoreBroke


class FileLock:
    """A lock on a file beside the store (locking the store itself would break SQLite's own locks)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> None:
        """Take it, or raise `StoreBroke` naming the process that holds it."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(file, 32).decode(errors="replace").strip() or "unknown"
            os.close(file)
            store = self._path.with_suffix("")
            raise StoreBroke(
                f"{store} is in use by another gateway (process {holder}): stop that one, or give this one a file of"
                f" its own with `store: sqlite:///...`"
            ) from error
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        self._file = file

    def release(self) -> None:
        """Let go of it; safe to call twice. The file stays: removing it would let two processes lock two files."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None
