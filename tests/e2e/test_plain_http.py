"""The tutorial that puts a gate between two programs without our SDK does what it says."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.documents import DOCS, Typed, files_of, typed
from tests.e2e.command import PATIENCE_S, environment
from tests.e2e.live_gate import tethered
from tests.e2e.transcripts import output_of, shell, steady

PAGE: Final = DOCS / "tutorial" / "plain-http.md"
PORTS: Final = ("7070", "9000", "9001")  # as the page has them
FOUR_DIGITS: Final = range(4_000, 9_999)  # as many as on the page, so that tables are as wide
STEP_S: Final = 0.05
# What its reader types into other terminals, or what goes on beside.
BESIDE: Final = ("make ", ". ", "agentgate serve", "python stock.py", "python orders.py", "(while ")


def free_ports() -> list[str]:
    """As many ports of loopback as the page uses."""
    found: list[str] = []
    for port in random.sample(FOUR_DIGITS, 200):
        with contextlib.closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                found.append(str(port))
        if len(found) == len(PORTS):
            return found
    raise AssertionError("no ports are free")


@contextlib.contextmanager
def program(file: Path) -> Iterator[None]:
    """A program of the page, until this is left."""
    process = subprocess.Popen(
        [sys.executable, file.name],
        cwd=file.parent,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def until_known(agent: str, folder: Path, environ: dict[str, str]) -> None:
    until = time.monotonic() + PATIENCE_S
    while agent not in output_of(shell("agentgate agents --json", folder, environ)):
        assert time.monotonic() < until, f"{agent} never registered"
        time.sleep(STEP_S)


def follow(lines: list[Typed], folder: Path, environ: dict[str, str]) -> None:
    """Type these lines; curl leaves out the last line break, a page does not."""
    for line in lines:
        printed = output_of(shell(line.command, folder, environ))
        assert steady(printed).strip() == steady(line.output).strip(), line.command


def test_two_programs_without_our_sdk(tmp_path: Path) -> None:
    """I6, C1: one registers itself, one is registered by curl; a repeat, a refusal, a chain and a loss are as shown."""
    ports = dict(zip(PORTS, free_ports(), strict=True))

    def moved(text: str) -> str:
        for port, other in ports.items():
            text = text.replace(port, other)
        return text

    for name, text in files_of(PAGE).items():
        (tmp_path / name).write_text(moved(text), encoding="utf-8")
    lines = [Typed(moved(line.command), line.output) for line in typed(PAGE) if not line.command.startswith(BESIDE)]
    environ = {"AGENTGATE_URL": f"http://127.0.0.1:{ports['7070']}", "AGENTGATE__SERVER__PORT": ports["7070"]}
    with (
        tethered("serve", cwd=tmp_path, environ=environ) as gate,
        contextlib.ExitStack() as stock,
        program(tmp_path / "orders.py"),
    ):
        gate.err.until("Ctrl-C stops it")
        stock.enter_context(program(tmp_path / "stock.py"))
        until_known("stock_agent", tmp_path, environ)
        follow(lines[:-1], tmp_path, environ)
        stock.close()
        follow(lines[-1:], tmp_path, environ)
