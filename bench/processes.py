"""The processes of a measurement, each ended on leaving, whatever happened."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import urlsplit

import msgspec

START_S: Final = 20.0
SERVER_START_S: Final = 60.0  # LiteLLM takes its time
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


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """What is started meanwhile runs on this core only."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextlib.contextmanager
def server(
    arguments: list[str],
    folder: Path,
    port: int,
    request: bytes,
    environment: dict[str, str] | None = None,
) -> Iterator[int]:
    """A program that is given once it answers this request with 200, as its process id; it and its children are ended.

    Raises `RuntimeError` with its last words when it does not.
    """
    log = folder / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            process_group=0,  # not a session of its own, which the scheduler would weigh apart from the rest
        )
    try:
        _wait_for_answer(process, port, request, log)
        yield process.pid
    finally:
        _end(process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it left behind


def ask(port: int, request: bytes) -> None:
    """Send a request; raises `RuntimeError` with the answer when it does not say yes."""
    if (heard := _answer(port, request))[9:10] != b"2":
        raise RuntimeError(f"{request[:LOG_CHARS_SHOWN].decode()}\n\nwas answered:\n{heard.decode(errors='replace')}")


def _answer(port: int, request: bytes) -> bytes:
    """The begin of an answer; empty while nobody is there."""
    try:
        with socket.create_connection(("127.0.0.1", port), STOP_S) as sock:
            sock.sendall(request)
            return sock.recv(LOG_CHARS_SHOWN)
    except OSError:
        return b""


def _wait_for_answer(process: subprocess.Popen[bytes], port: int, request: bytes, log: Path) -> None:
    until = time.monotonic() + SERVER_START_S
    heard = b""
    while process.poll() is None and time.monotonic() < until:
        heard = _answer(port, request)
        if heard[9:12] == b"200":
            return
        time.sleep(0.05)
    last_words = log.read_text(errors="replace")[-LOG_CHARS_SHOWN:]
    raise RuntimeError(f"{log.parent.name} did not start:\n{last_words}{heard.decode(errors='replace')}")
