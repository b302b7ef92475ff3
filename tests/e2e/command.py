"""The command as a user runs it: a process, its output, its end."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

AGENTGATE = str(Path(sys.executable).with_name("agentgate"))
PATIENCE_S = 60.0
LINES_MAX = 100_000


def environment(**more: str) -> dict[str, str]:
    """Ours, without what would change a gate's settings, and with a terminal of known width."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AGENTGATE")}
    return {**kept, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", **more}


def agentgate(
    *arguments: str, stdin: str = "", environ: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [AGENTGATE, *arguments],
        input=stdin,
        env=environment(**(environ or {})),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


class Running:
    """A command that runs on; its lines arrive while it does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.out = _Lines(process.stdout)
        self.err = _Lines(process.stderr)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


class _Lines:
    """The lines of one pipe, read by a thread so that the process never blocks."""

    def __init__(self, pipe: IO[str] | None) -> None:
        assert pipe is not None
        self.seen: list[str] = []
        self._queue: queue.Queue[str] = queue.Queue(LINES_MAX)
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                self._queue.put(line.rstrip("\n"))

    def until(self, text: str) -> str:
        """The next line that contains the text."""
        while True:
            try:
                line = self._queue.get(timeout=PATIENCE_S)
            except queue.Empty:
                raise AssertionError(f"no line with {text!r} came; what came: {self.seen}") from None
            self.seen.append(line)
            if text in line:
                return line

    def all(self) -> list[str]:
        """Everything, once the process has ended."""
        self._thread.join(PATIENCE_S)
        while not self._queue.empty():
            self.seen.append(self._queue.get())
        return self.seen


@contextlib.contextmanager
def running(*arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Iterator[Running]:
    """Start a command; it is killed at the end if it still runs."""
    process = subprocess.Popen(
        [AGENTGATE, *arguments],
        env=environment(**(environ or {})),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    command = Running(process)
    try:
        yield command
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        command.out.all()
        command.err.all()
