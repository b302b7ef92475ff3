"""`agentgate demo` as a user runs it: real processes, a real batch, figures that hold, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

ROOT = Path(__file__).parents[2]
HANG_MS = 9_000  # nobody waits so long for work that goes on; the fixed time-out of an attempt is 10 s
PROMISED = {
    *("orders", "completed", "degraded", "failed", "unknown", "completion_rate"),
    *("effects_twice", "duplicates_answered", "retries", "retries_saved", "breaker_opened"),
    *("deadlocks_found", "deadlocks_resolved", "longest_wait_ms"),
    *("messages", "messages_full_mesh", "e2e_p50_ms", "e2e_p95_ms", "seconds"),
}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agentgate.cli", "demo", *arguments]


def environment(folder: Path, **other: str) -> dict[str, str]:
    """Everything of the run happens below this folder, by which its processes can be told from others."""
    return {**os.environ, "TMPDIR": str(folder), **other}


def figures_of(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    figures: dict[str, Any] = json.loads(ran.stdout)
    assert figures.keys() >= PROMISED
    assert figures["orders"] == sum(figures[kind] for kind in ("completed", "degraded", "failed", "unknown"))
    assert figures["messages_full_mesh"] == figures["messages"] * 7
    return figures


def run(folder: Path, *arguments: str, **other: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), env=environment(folder, **other), capture_output=True, check=False, text=True, cwd=folder
    )


def left_behind(folder: Path) -> list[psutil.Process]:
    """Processes that were started for a run in this folder."""
    return [process for process in psutil.process_iter() if belongs(process, folder)]


def belongs(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get("TMPDIR") == str(folder)
    except psutil.Error:
        return False


def wait_until_gone(folder: Path, seconds: float) -> list[psutil.Process]:
    until = time.monotonic() + seconds
    while (left := left_behind(folder)) and time.monotonic() < until:
        time.sleep(0.2)
    return left


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A demo that has begun to send orders."""
    with subprocess.Popen(
        command("--faults", "off"), env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        wait_for_line(process.stdout, "everybody is there")
        time.sleep(1)
        yield process
        process.kill()
    for left in left_behind(tmp_path):
        left.kill()


def wait_for_line(stream: IO[str], text: str) -> None:
    for line in stream:
        if text in line:
            return
    raise AssertionError(f"it ended without saying {text!r}")


def test_demo_with_faults_holds_its_bars(tmp_path: Path) -> None:
    """The main job: 120 orders with faults on end by themselves; nearly all are completed, few degraded, no effect
    happened twice, the breaker opened, repeats were answered, and neither files nor processes stay.
    """
    figures = figures_of(run(tmp_path, "--orders", "120", "--seed", "7", "--json"))
    assert figures["orders"] == 120
    assert figures["completion_rate"] >= 0.99
    assert figures["degraded"] <= 0.2 * 120
    assert figures["effects_twice"] == 0
    assert figures["answers_differ"] == 0
    assert figures["breaker_opened"] > 0
    assert figures["retries_saved"] > 0
    assert figures["retries"] > 0
    assert figures["malformed"] > 0
    assert figures["checks"] > 0, "the killed process's last message was not asked after"
    assert figures["duplicates_answered"] > 0
    assert figures["deadlocks_resolved"] == figures["deadlocks_found"] > 0
    assert figures["longest_wait_ms"] < HANG_MS
    assert list(tmp_path.iterdir()) == []
    assert left_behind(tmp_path) == []


def test_without_the_wait_graph_the_same_agents_stand_still_until_a_time_out(tmp_path: Path) -> None:
    """D3, J4: the same seed with the mechanism off: nobody finds the circles, and only time-outs end them."""
    ran = run(tmp_path, "--orders", "60", "--seed", "7", "--json", AGENTGATE__MECHANISMS__WAIT_GRAPH="off")
    figures = figures_of(ran)
    assert (figures["deadlocks_found"], figures["deadlocks_resolved"]) == (0, 0)
    assert figures["longest_wait_ms"] > HANG_MS
    assert figures["effects_twice"] == 0


def test_demo_without_faults_completes_everything(tmp_path: Path) -> None:
    """With faults off every order is completed, nothing is degraded, and no breaker opens."""
    figures = figures_of(run(tmp_path, "--orders", "20", "--faults", "off", "--json"))
    assert (figures["completed"], figures["degraded"], figures["breaker_opened"]) == (20, 0, 0)
    assert figures["effects_twice"] == 0
    assert figures["duplicates_answered"] > 0


def test_ctrl_c_stops_everything(running: subprocess.Popen[str], tmp_path: Path) -> None:
    """Ctrl-C ends the run with 130 and a sentence; every process and file of it is gone."""
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert "stopped" in said
    assert "Traceback" not in said
    assert left_behind(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_children_notice_that_the_demo_was_killed(running: subprocess.Popen[str], tmp_path: Path) -> None:
    """After kill -9 of the demo, its gate, supervisor and agents end by themselves."""
    running.kill()
    running.wait()
    assert wait_until_gone(tmp_path, 20) == []


def test_demo_says_why_when_the_gate_dies(running: subprocess.Popen[str], tmp_path: Path) -> None:
    """A gate that is killed from outside ends the run with a sentence, its last words, and the place of the logs."""
    (gate,) = [process for process in left_behind(tmp_path) if "serve" in process.cmdline()]
    gate.kill()
    _, said = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "gate ended with status -9" in said
    assert "\\n" not in said, "its last words are lines"
    assert "logs are in" in said
    assert "Traceback" not in said
    assert left_behind(tmp_path) == []


def test_demo_runs_from_a_wheel_and_explains_its_figures(tmp_path: Path) -> None:
    """The installed package brings its own agents and orders, no checkout is needed; without --json the run tells what
    happens, and each figure comes with its meaning.
    """
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    work = tmp_path / "work"
    ran = run(
        tmp_path, "--orders", "5", "--faults", "off", "--keep", str(work), COLUMNS="160", PYTHONPATH=str(installed)
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "everybody is there" in ran.stdout
    assert "effects twice" in ran.stdout
    assert "counted in that file" in ran.stdout
    assert (work / "effects.sqlite").is_file()
    where = subprocess.run(
        [sys.executable, "-c", "from agentgate.cli.demo.run import find_example; print(find_example())"],
        env=environment(tmp_path, PYTHONPATH=str(installed)),
        capture_output=True,
        check=True,
        text=True,
        cwd=tmp_path,
    )
    assert Path(where.stdout.strip()) == installed / "agentgate" / "examples" / "support"
