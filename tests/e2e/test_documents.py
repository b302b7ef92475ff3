"""What the tutorial and the how-to pages tell their readers to type does what they say."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.documents import DOCS, files_of, read, typed, write_files
from tests.e2e.command import PATIENCE_S, Running, environment
from tests.e2e.live_gate import free_port, tethered
from tests.e2e.transcripts import follow, output_of, shell, steady

STEP_S: Final = 0.05
PID: Final = re.compile(r"stock_agent: started \(pid (\d+)\)")
ADDED: Final = re.compile(r"<!-- above the last two lines of (\S+) -->\n```python\n(.*?)\n```\n", re.DOTALL)
OUTPUT: Final = re.compile(r"<!-- output of (\S+) -->\n```text\n(.*?)```\n", re.DOTALL)


@contextmanager
def developing(page: Path, folder: Path, *files: str) -> Iterator[tuple[Running, dict[str, str]]]:
    """`agentgate dev` with agents of this page, all connected."""
    write_files(page, folder)
    port = free_port()
    environ = {"AGENTGATE_URL": f"http://127.0.0.1:{port}", "AGENTGATE__SERVER__PORT": str(port)}
    with tethered("dev", *files, cwd=folder, environ=environ) as running:
        for _ in files:
            running.err.until(": connected to")
        yield running, environ


def test_the_first_tutorial(tmp_path: Path) -> None:
    """C1, C4, G1: two agents, a call, a repeat, a process killed in the middle: everything comes as the page says."""
    page = DOCS / "tutorial" / "first-gate.md"
    lines = [line for line in typed(page) if not line.command.startswith(("make ", ". "))]
    dev, lines = lines[0], lines[1:]
    with developing(page, tmp_path, *dev.command.split()[2:]) as (running, environ):
        assert_said(running, dev.output)
        lost, checked = (n for n, line in enumerate(lines) if "label_s" in line.command)

        follow(lines[:lost], tmp_path, environ)
        kill_in_the_middle(lines[lost].command, lines[lost].output, tmp_path, environ, running)
        follow(lines[lost + 1 : checked], tmp_path, environ)

        running.err.until("stock_agent | stock_agent: connected to")  # its successor, not the report of the crash
        add_what_the_page_adds(page, tmp_path)
        running.err.until("its files have changed")
        running.err.until("stock_agent | stock_agent: connected to")
        kill_in_the_middle(lines[checked].command, lines[checked].output, tmp_path, environ, running)
        follow(lines[checked + 1 :], tmp_path, environ)
        assert running.stop(signal.SIGINT) == 0

    with tethered("dev", *dev.command.split()[2:], cwd=tmp_path, environ=environ) as running:
        running.err.until(": connected to")
        follow(lines[:1], tmp_path, environ)


def assert_said(running: Running, shown: str) -> None:
    """The command has said every line that the page shows, in whatever order."""
    said = [steady(line) for line in running.err.seen]
    assert [line for line in shown.splitlines() if steady(line) not in said] == []


def kill_in_the_middle(command: str, output: str, folder: Path, environ: dict[str, str], dev: Running) -> None:
    """Type the command, and kill the stock agent once it has written its line; the command ends as the page says."""
    book = folder / "reservations.txt"
    before = book.read_text(encoding="utf-8")
    calling = shell(command, folder, environ)
    until = time.monotonic() + PATIENCE_S
    while book.read_text(encoding="utf-8") == before:
        assert time.monotonic() < until, "the reservation was not made"
        time.sleep(STEP_S)
    pid = [found[1] for line in dev.err.seen if (found := PID.search(line))][-1]
    subprocess.run(["kill", "-9", pid], check=True)
    assert steady(output_of(calling)) == steady(output)


def add_what_the_page_adds(page: Path, folder: Path) -> None:
    """Put the part that comes later where the page says."""
    found = ADDED.search(read(page))
    assert found, "the page adds nothing"
    file = folder / found[1]
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*lines[:-2], found[2], "", "", *lines[-2:]]) + "\n", encoding="utf-8")


def test_calling_from_a_script_and_from_the_shell(tmp_path: Path) -> None:
    """I1: the script prints what its page says, and so do the commands after it."""
    page = DOCS / "how-to" / "call-from-a-script.md"
    outputs = dict(OUTPUT.findall(read(page)))
    with developing(page, tmp_path, "stock_agent.py") as (_, environ):
        for script, output in outputs.items():
            assert output_of(shell(f"python {script}", tmp_path, environ)) == output
        follow(list(typed(page)), tmp_path, environ)


def test_the_tests_of_agents_pass(tmp_path: Path) -> None:
    """I1: the tests that the page shows are tests that pass."""
    page = DOCS / "how-to" / "test-agents.md"
    write_files(page, tmp_path)
    shown = sum(text.count("\ndef test_") for text in files_of(page).values())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, f"{shown} passed" in done.stdout) == (0, True), done.stdout
