"""A gate that can be killed and started again on its store and port, and agents beside it, as processes of a test.

Each process hangs on a tether: a pipe that is its standard input and ends with the test's process, whatever ends that.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from tests.e2e.command import PATIENCE_S, Running, environment

ROOT: Final = Path(__file__).parents[2]
AGENTS: Final = Path(__file__).parent / "agents"

# Below the ports that operating systems hand out: nobody is given it between two starts.
PORTS: Final = range(20_000, 30_000)
PORT_TRIES: Final = 100
HTTP_S: Final = 5.0
SAMPLE: Final = re.compile(r"^agentgate_(\w+?)(?:_total)? ([\d.e+]+)$", re.MULTILINE)

# Every frame as a captured line costs a client more than the frame itself, and buries what a failed test has to say.
logging.getLogger("websockets").setLevel(logging.INFO)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    for port in random.sample(PORTS, PORT_TRIES):
        with contextlib.closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("no port is free")


@contextlib.contextmanager
def tethered(*arguments: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run a command of agentgate; it is gone when this is left, or when the test's process is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agentgate.cli.demo.tether", *arguments],
        env=environment(PYTHONPATH=os.pathsep.join((str(ROOT), str(ROOT / "src"))), **(environ or {})),
        cwd=cwd,
        stdin=subprocess.PIPE,
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
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        command.out.all()
        command.err.all()


class LiveGate:
    """`agentgate serve` on one port and one store, through several lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.lives = 0
        self._life = contextlib.ExitStack()
        self._running: Running | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._life.close()

    def start(self) -> None:
        """Begin a life; returns when calls are taken."""
        arguments = ["serve", "--port", str(self.port), "--json", "--log-level", "warning"]
        self._running = self._life.enter_context(tethered(*arguments, cwd=self.folder))
        self._running.out.until("url")
        self.lives += 1

    def kill(self) -> None:
        """End a life: no signal handler, no last words."""
        assert self._running is not None
        self._running.process.kill()
        self._life.close()

    def stop(self) -> int:
        """End the last life in good order; its exit code."""
        assert self._running is not None
        return self._running.stop()

    def errors(self) -> list[str]:
        """What the current life has written to standard error, once it has ended."""
        assert self._running is not None
        return self._running.err.all()

    def get(self, path: str) -> Any:
        """What the HTTP API answers."""
        with urllib.request.urlopen(self.url + path, timeout=HTTP_S) as answer:  # noqa: S310 - our own loopback
            return json.loads(answer.read())

    def metrics(self) -> dict[str, float]:
        """The figures of this life that have no labels, by their names without prefix."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=HTTP_S) as answer:  # noqa: S310 - our own loopback
            return {name: float(value) for name, value in SAMPLE.findall(answer.read().decode())}


@contextlib.contextmanager
def agents(gate: LiveGate, files: Sequence[Path], **environ: str) -> Iterator[Running]:
    """`agentgate run FILES`; entered when all are connected."""
    arguments = ["run", *map(str, files), "--url", gate.url, "--json"]
    with tethered(*arguments, cwd=gate.folder, environ=environ) as running:
        for _ in files:
            running.err.until(": connected to")
        yield running
