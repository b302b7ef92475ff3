"""The processes of a run: a gate on SQLite, and eight agents under the supervisor, as anybody would start them.

Each is a process group of its own on a tether, so that Ctrl-C reaches this program alone, which then stops the others
in order, and so that none outlives it whatever happens. What they say goes to files.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from agentgate.cli.demo.gauges import Gauges
from agentgate.errors import AgentGateError

START_S: Final = 60.0  # eight interpreters at once on two busy cores
LOOK_S: Final = 0.2
STOP_S: Final = 10.0  # nothing is in hand any more when the last order has its answer
LAST_S: Final = 2.0

LOG_TAIL: Final = 12  # lines


class CrewProblem(AgentGateError):
    """A process of the run did not do its part."""


class Member:
    """One child process, its log, and the pipe that ties it to this one."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.returncode is not None

    async def ended(self) -> None:
        """Wait for an end that nobody asked for, and raise."""
        status = await self._process.wait()
        raise CrewProblem(f"{self.name} ended with status {status}; its last words:\n{self.last_words()}")

    async def stop(self) -> None:
        """Ask it to end; if it takes too long ask again, at which it ends at once; if it is still there, kill it."""
        for patience_s in (STOP_S, LAST_S):
            if await self._terminated(patience_s):
                return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def _terminated(self, patience_s: float) -> bool:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), patience_s)
        except TimeoutError:
            return False
        return True

    def last_words(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL:])


@contextlib.asynccontextmanager
async def started(
    name: str, arguments: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> AsyncIterator[Member]:
    """Run an agentgate command as a child of this process, with this environment; leaving stops it."""
    log = folder / f"{name}.log"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "agentgate.cli.demo.tether",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=out,
            stderr=asyncio.subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    member = Member(name, process, log)
    try:
        yield member
    finally:
        await asyncio.shield(member.stop())


async def ready(members: Sequence[Member], gauges: Gauges, agents: int) -> None:
    """Wait until the gate takes calls and that many agents are connected."""
    try:
        async with asyncio.timeout(START_S):
            while not (await gauges.is_ready() and len(await gauges.instances()) >= agents):
                for member in members:
                    if member.has_ended:
                        await member.ended()
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        here = sorted(await gauges.instances()) if await gauges.is_ready() else "nobody; the gate does not answer"
        raise CrewProblem(f"after {START_S:.0f} s not everybody is there: {here}") from None


def free_port() -> int:
    """A port of the loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
