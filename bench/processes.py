"""The processes of a measurement, each ended on leaving, whatever happened."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

START_S: Final = 20.0
STOP_S: Final = 10.0
ASK_AGAIN_S: Final = 0.05
LOG_CHARS_SHOWN: Final = 2000

_spawn = multiprocessing.get_context("spawn")


class Gate:
    """A running `agentgate serve`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.pid = process.pid
        self.port = port
        self._process = process
        self._log = log

    def wait_until_it_listens(self) -> None:
        """Return when connections are accepted; raise `RuntimeError` with its last words when it ends before."""
        give_up_at = time.monotonic() + START_S
        while time.monotonic() < give_up_at:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(ASK_AGAIN_S)
        raise RuntimeError(f"the gate did not start:\n{self._log.read_text(errors='replace')[-LOG_CHARS_SHOWN:]}")


@contextlib.contextmanager
def gate(folder: Path) -> Iterator[Gate]:
    """A gate with its store in this folder, on a free port, with the defaults of every policy."""
    port = _free_port()
    log = folder / "gate.log"
    settings = {"AGENTGATE__SERVER__PORT": str(port), "AGENTGATE__STORE": f"sqlite:///{folder / 'gate.db'}"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "agentgate.cli", "serve"],
            env={**os.environ, **settings},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        running = Gate(process, port, log)
        running.wait_until_it_listens()
        yield running
    finally:
        _end(process)


@contextlib.contextmanager
def spawned(work: Callable[..., None], *arguments: Any) -> Iterator[Connection]:
    """A process that runs `work(*arguments, connection)`; it is to end when the connection does."""
    ours, theirs = _spawn.Pipe()
    process = _spawn.Process(target=work, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        ours.close()
        process.join(STOP_S)
        if process.is_alive():
            process.kill()
            process.join()


def receive(connection: Connection, within_s: float) -> Any:
    """What the process at the other end has to say; raises `RuntimeError` when it ends or says nothing."""
    if not connection.poll(within_s):
        raise RuntimeError(f"nothing was heard for {within_s:g} s")
    try:
        return connection.recv()
    except EOFError:
        raise RuntimeError("a process of the measurement has ended; its error is above") from None


def end_on_signals() -> None:
    """Let a termination unwind like an interrupt does, so that nothing is left behind."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
