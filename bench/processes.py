"""The processes of a measurement, each ended on leaving, whatever happened."""

from __future__ import annotations

import contextlib
import multiprocessing
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import urlsplit

import msgspec

START_S: Final = 20.0
STOP_S: Final = 10.0
LOG_CHARS_SHOWN: Final = 2000

_spawn = multiprocessing.get_context("spawn")


class Gate(NamedTuple):
    """A running gate."""

    pid: int
    port: int


@contextlib.contextmanager
def gate(folder: Path) -> Iterator[Gate]:
    """`agentgate serve` with its store in this folder, on a free port, with the defaults of every policy."""
    log = folder / "gate.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "agentgate.cli",
                "serve",
                "--json",
                "--port",
                "0",
                "--store",
                f"sqlite:{folder}/gate.db",
            ],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield Gate(process.pid, _port_of(process, log))
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


def _port_of(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port that the gate names once it takes calls; raises `RuntimeError` with its last words."""
    assert process.stdout is not None
    is_heard, _, _ = select.select([process.stdout], [], [], START_S)
    said = process.stdout.readline() if is_heard else b""
    if not said:
        raise RuntimeError(f"the gate did not start:\n{log.read_text(errors='replace')[-LOG_CHARS_SHOWN:]}")
    port = urlsplit(msgspec.json.decode(said, type=dict[str, str])["url"]).port
    assert port is not None
    return port


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
