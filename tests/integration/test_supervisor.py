"""Agent processes: started again when they crash, stopped in good order, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agentgate.cli.supervisor import Event, Supervisor, SupervisorOptions
from tests.integration.realtime import realtime

FAST = SupervisorOptions(backoff_s=0.02, backoff_max_s=0.05, crashes_max=3, grace_s=1.0)


class Story:
    """What a supervisor told and what its processes printed."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.lines: list[tuple[str, str, str]] = []
        self._changed = asyncio.Event()

    def tell(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    def show(self, agent: str, stream: str, line: str) -> None:
        self.lines.append((agent, stream, line))
        self._changed.set()

    def whats(self, agent: str) -> list[str]:
        return [event.what for event in self.events if event.agent == agent]

    async def until(self, happened: Callable[[Story], bool]) -> None:
        async with asyncio.timeout(30):
            while not happened(self):
                self._changed.clear()
                await self._changed.wait()


def supervisor_of(story: Story, files: Sequence[Path], options: SupervisorOptions = FAST) -> Supervisor:
    return Supervisor(
        files, environ=dict(os.environ), tell=story.tell, show=story.show, draw=lambda: 0.5, options=options
    )


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    return path


POLITE = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready")
signal.pause()
"""
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready")
while True:
    signal.pause()
"""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@realtime
async def test_a_crash_is_reported_and_tried_again_a_bounded_number_of_times(tmp_path: Path) -> None:
    """A program that always crashes is started four times, each crash with exit code and last words, then given up."""
    file = script(tmp_path, "broken", "import sys\nprint('out')\nsys.exit('it is broken')\n")
    story = Story()
    supervisor = supervisor_of(story, [file])
    async with supervisor:
        async with asyncio.timeout(30):
            await supervisor.ended.wait()
    assert story.whats("broken") == [*(["started", "crashed"] * 3), "started", "gave_up"]
    crash = story.events[1]
    assert crash.detail.startswith("ended with exit code 1 after ")
    assert (crash.more["exit_code"], crash.more["stderr"]) == (1, ["it is broken"])
    assert ("broken", "stdout", "out") in story.lines
    assert not supervisor.is_clean


@realtime
async def test_an_agent_that_asks_for_it_is_started_again_at_once(tmp_path: Path) -> None:
    """Exit code 75 means: start me again; it is no crash, and the next good end counts as good."""
    file = script(
        tmp_path,
        "again",
        "import pathlib, sys\nflag = pathlib.Path(__file__).with_suffix('.flag')\n"
        "if not flag.exists():\n    flag.touch()\n    sys.exit(75)\n",
    )
    story = Story()
    supervisor = supervisor_of(story, [file])
    async with supervisor:
        async with asyncio.timeout(30):
            await supervisor.ended.wait()
    assert story.whats("again") == ["started", "restarting", "started", "finished"]
    assert supervisor.is_clean


@realtime
async def test_leaving_asks_everybody_to_finish(tmp_path: Path) -> None:
    """A6: leaving sends SIGTERM, waits for everybody, and nothing is left running."""
    files = [script(tmp_path, name, POLITE) for name in ("one", "two")]
    story = Story()
    supervisor = supervisor_of(story, files)
    async with supervisor:
        await story.until(lambda story: len(story.lines) == 2)
        pids = [event.more["pid"] for event in story.events]
    assert story.whats("one") == story.whats("two") == ["started", "stopping", "stopped"]
    assert not any(is_alive(pid) for pid in pids)
    assert supervisor.is_clean


@realtime
async def test_who_does_not_stop_is_killed_after_the_grace(tmp_path: Path) -> None:
    """A process that ignores SIGTERM is killed after the grace, and the report says so."""
    story = Story()
    supervisor = supervisor_of(story, [script(tmp_path, "stubborn", STUBBORN)])
    async with supervisor:
        await story.until(lambda story: bool(story.lines))
        pid = story.events[0].more["pid"]
    assert story.whats("stubborn") == ["started", "stopping", "killed"]
    assert story.events[-1].detail == "it did not finish within 1 s"
    assert not is_alive(pid)
    assert not supervisor.is_clean


@realtime
async def test_what_a_process_started_does_not_outlive_it(tmp_path: Path) -> None:
    """A grandchild that holds the pipes open neither blocks the supervisor nor stays behind."""
    file = script(
        tmp_path,
        "parent",
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\nprint(child.pid)\n",
    )
    story = Story()
    supervisor = supervisor_of(story, [file])
    async with supervisor:
        async with asyncio.timeout(30):
            await supervisor.ended.wait()
    grandchild = int(story.lines[0][2])
    assert await ends_within(grandchild, 10.0)


async def ends_within(pid: int, seconds: float) -> bool:
    for _ in range(int(seconds / 0.02)):
        if not is_alive(pid) or is_zombie(pid):
            return True
        await asyncio.sleep(0.02)
    return False


def is_zombie(pid: int) -> bool:
    """Dead, and waiting for whoever adopted it."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


@realtime
async def test_a_reload_starts_a_new_process(tmp_path: Path) -> None:
    """A reload finishes the running process and starts a new one, also of an agent that had been given up."""
    polite, broken = script(tmp_path, "polite", POLITE), script(tmp_path, "broken", "raise SystemExit(78)")
    story = Story()
    async with supervisor_of(story, [polite, broken]) as supervisor:
        await story.until(lambda story: bool(story.lines) and "gave_up" in story.whats("broken"))
        script(tmp_path, "broken", POLITE)
        supervisor.reload(["polite", "broken"])
        await story.until(lambda story: len(story.lines) == 3)
    assert story.whats("polite") == ["started", "restarting", "started", "stopping", "stopped"]
    assert story.whats("broken") == ["started", "gave_up", "started", "stopping", "stopped"]


@realtime
async def test_output_is_bounded_by_line(tmp_path: Path) -> None:
    """A line without an end is cut into pieces, a process that prints a million characters blocks nobody."""
    file = script(tmp_path, "loud", "import sys\nsys.stderr.write('x' * 1_000_000)\n")
    story = Story()
    supervisor = supervisor_of(story, [file])
    async with supervisor:
        async with asyncio.timeout(30):
            await supervisor.ended.wait()
    assert max(len(line) for _, _, line in story.lines) <= FAST.line_bytes_max
    assert story.whats("loud") == ["started", "finished"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
@realtime
async def test_a_killed_agent_is_started_again(tmp_path: Path, number: signal.Signals) -> None:
    """G1: an agent process that is killed from outside comes back, and the report names the signal."""
    story = Story()
    async with supervisor_of(story, [script(tmp_path, "victim", POLITE)]):
        await story.until(lambda story: bool(story.lines))
        os.kill(story.events[0].more["pid"], number)
        await story.until(lambda story: len(story.lines) == 2)
    assert story.whats("victim")[:3] == ["started", "crashed", "started"]
    assert story.events[1].detail.startswith(f"was killed by {number.name} after ")


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        ("def take(order, ctx: Context): ...", "is not async: its second parameter is a SyncContext, not a Context"),
        (
            "async def take(order, ctx: SyncContext): ...",
            "is async: its second parameter is a Context, not a SyncContext",
        ),
    ],
    ids=["sync", "async"],
)
@realtime
async def test_a_wrong_handler_is_one_line_and_no_crash(tmp_path: Path, handler: str, says: str) -> None:
    """I3: a setting is wrong, which starting again does not cure; the line names the handler and its file."""
    text = f"from agentgate import *\nagent = Agent('a')\n@agent.handles('reserve')\n{handler}\nagent.run()\n"
    story = Story()
    async with supervisor_of(story, [script(tmp_path, "stock", text)]) as supervisor:
        await asyncio.wait_for(supervisor.ended.wait(), 30)
        assert supervisor.is_refused
    assert story.whats("stock") == ["started", "gave_up"]
    assert story.events[-1].more["exit_code"] == 78
    assert [line for _, _, line in story.lines] == [f"handler `take` of `reserve` (stock.py:3) {says}"]
