"""Keeps agent processes running: one process a file, started again when it crashes, stopped in good order.

What happens after an exit is one table (`after_exit`). Each process leads a session of its own, so that Ctrl-C in the
terminal reaches the supervisor alone, which then asks them to finish; what is still there after the grace is killed,
with everything it has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast

from agentgate.runtime.service import Service

EXIT_RESTART: Final = 75  # EX_TEMPFAIL: the agent asks to be started again
EXIT_REFUSED: Final = 78  # EX_CONFIG: a setting is wrong, or the gate refuses the agent; trying again changes nothing

PIPES_CLOSE_S: Final = 1.0  # what a dead process has written arrives at once


@dataclass(frozen=True, kw_only=True, slots=True)
class SupervisorOptions:
    """When to start again, and how long to wait.

    - `backoff_s`, 0.5, doubling to `backoff_max_s`, 30, half of it drawn: a program that is broken costs little, and
      eight that were hit by the same thing do not come back in step.
    - `healthy_s`, 10: who ran that long starts from the beginning of the back-off.
    - `crashes_max`, 10 in a row: about two minutes; then somebody has to look.
    - `grace_s`, 32: the 30 s that an agent takes for what it has in hand, and the time to say good-bye.
    - `tail_lines`, 20 lines of standard error kept for the report; `line_bytes_max`, 8 KiB of one line.
    """

    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    healthy_s: float = 10.0
    crashes_max: int = 10
    grace_s: float = 32.0
    tail_lines: int = 20
    line_bytes_max: int = 8_192


Stream = Literal["stdout", "stderr"]
What = Literal["started", "crashed", "restarting", "finished", "gave_up", "stopping", "stopped", "killed"]


class Event(NamedTuple):
    """Something happened to an agent's process."""

    agent: str
    what: What
    detail: str = ""
    more: Mapping[str, Any] = {}


class Next(NamedTuple):
    """What follows an exit."""

    what: What
    again_in_s: float | None = None  # None: not at all
    crashes: int = 0


def after_exit(code: int, ran_s: float, crashes: int, options: SupervisorOptions, draw: Callable[[], float]) -> Next:
    """Decide what follows an exit; `crashes` is how many there were in a row before it."""
    if code == 0:
        return Next("finished")
    if code == EXIT_REFUSED:
        return Next("gave_up")
    in_a_row = 1 if ran_s >= options.healthy_s else crashes + 1
    if in_a_row > options.crashes_max:
        return Next("gave_up", crashes=in_a_row)
    if code == EXIT_RESTART and in_a_row == 1:
        return Next("restarting", 0.0, in_a_row)
    ceiling = min(options.backoff_max_s, options.backoff_s * 2.0 ** (in_a_row - 1))
    return Next("restarting" if code == EXIT_RESTART else "crashed", ceiling * (0.5 + draw() / 2), in_a_row)


@dataclass
class Child:
    """One agent: its file, its process if there is one, and what became of the last."""

    name: str
    file: Path
    tail: deque[str]
    process: _Process | None = None
    crashes: int = 0
    wanted: bool = False  # a reload asks for a new process
    killed: bool = False
    refused: bool = False  # a setting is wrong, or the gate refuses it: no supervisor of ours can help
    end: What | None = None  # it is not started again
    wake: asyncio.Event = field(default_factory=asyncio.Event)


class Supervisor(Service):
    """Starts everything when entered, and stops everything when left; `ended` is set when nothing runs any more.

    `tell` hears of events, `show(child, stream, line)` gets what the processes print.
    """

    def __init__(
        self,
        files: Sequence[Path],
        *,
        environ: Mapping[str, str],
        tell: Callable[[Event], None],
        show: Callable[[str, Stream, str], None],
        draw: Callable[[], float],
        options: SupervisorOptions | None = None,
    ) -> None:
        super().__init__()
        self._options = options or SupervisorOptions()
        self._environ = {**environ, "PYTHONUNBUFFERED": "1"}
        self._tell = tell
        self._show = show
        self._draw = draw
        self._is_stopping = False
        self.ended = asyncio.Event()
        self.children = [
            Child(name, file, deque(maxlen=self._options.tail_lines))
            for name, file in zip(names_of(files), files, strict=True)
        ]

    @property
    def is_clean(self) -> bool:
        """Whether every agent ended as it should."""
        return all(child.end in ("finished", "stopped") for child in self.children)

    @property
    def is_refused(self) -> bool:
        """Whether an agent was given up because a setting is wrong, or the gate refuses it."""
        return any(child.refused for child in self.children)

    def reload(self, names: Iterable[str]) -> None:
        """Start these agents anew, also those that had ended; what is in hand is finished first."""
        for child in self.children:
            if child.name in names:
                child.wanted = True
                child.wake.set()
                self._ask_to_stop(child)

    def kill(self) -> None:
        """End every process now; for somebody who cannot wait."""
        for child in self.children:
            if child.process is not None:
                child.process.kill_group()

    async def _start(self) -> None:
        for child in self.children:
            self._spawn(self._keep(child))

    async def _stop(self) -> None:
        """Ask every process to finish; each is killed after the grace, so this ends."""
        self._is_stopping = True
        for child in self.children:
            child.wake.set()
            if child.process is not None:
                self._tell(Event(child.name, "stopping"))
                self._ask_to_stop(child)
        await self.ended.wait()

    async def _keep(self, child: Child) -> None:
        """Run one agent, again and again."""
        loop = asyncio.get_running_loop()
        goes_on = True
        while goes_on:
            self.ended.clear()
            child.end, child.wanted, child.killed, child.refused = None, False, False, False
            child.wake.clear()
            began = loop.time()
            code = await self._run_once(child)
            goes_on = await self._is_to_go_on(child, code, loop.time() - began)
        child.end = child.end or "stopped"
        self._check_ended()

    async def _is_to_go_on(self, child: Child, code: int, ran_s: float) -> bool:
        """Whether to start it again, once that is due."""
        if self._is_stopping:
            self._note_stopped(child, code)
        elif child.wanted:
            self._tell(Event(child.name, "restarting", "its files have changed"))
        else:
            await self._follow(child, code, ran_s)
        return not self._is_stopping

    async def _follow(self, child: Child, code: int, ran_s: float) -> None:
        """Do what the table says: report, then wait; for a reload or the end, if it is not to be started again."""
        following = after_exit(code, ran_s, child.crashes, self._options, self._draw)
        child.crashes = following.crashes
        again_s = following.again_in_s
        detail = exit_text(code, ran_s) + (f"; again in {again_s:.1f} s" if again_s else "")
        more = {"exit_code": code, "ran_s": round(ran_s, 3), "again_in_s": again_s, "stderr": list(child.tail)}
        self._tell(Event(child.name, following.what, detail, more))
        if again_s is None:
            child.end, child.refused = following.what, code == EXIT_REFUSED
            self._check_ended()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(again_s):
                await child.wake.wait()

    def _check_ended(self) -> None:
        if all(child.end is not None for child in self.children):
            self.ended.set()

    def _note_stopped(self, child: Child, code: int) -> None:
        child.end = "killed" if child.killed else "stopped" if code == 0 else "crashed"
        detail = f"it did not finish within {self._options.grace_s:g} s" if child.killed else exit_text(code)
        self._tell(Event(child.name, child.end, detail, {"exit_code": code}))

    async def _run_once(self, child: Child) -> int:
        """One process from its start to its end, with everything it started."""
        child.tail.clear()
        loop = asyncio.get_running_loop()
        transport, process = await loop.subprocess_exec(
            lambda: _Process(self._options.line_bytes_max, partial(self._print, child)),
            sys.executable,
            str(child.file),
            stdin=subprocess.DEVNULL,
            env=self._environ,
            start_new_session=True,
        )
        child.process = process
        self._tell(Event(child.name, "started", f"pid {process.pid}", {"pid": process.pid}))
        if self._is_stopping or child.wanted:  # it was asked for while the process was being made
            self._ask_to_stop(child)
        try:
            code = await process.exited
            process.kill_group()  # what it started must not outlive it, or hold its pipes open
            await asyncio.wait({process.closed}, timeout=PIPES_CLOSE_S)
        finally:
            if not process.exited.done():
                process.kill_group()
            transport.close()
            child.process = None
        return code

    def _print(self, child: Child, stream: Stream, text: str) -> None:
        if stream == "stderr":
            child.tail.append(text)
        self._show(child.name, stream, text)

    def _ask_to_stop(self, child: Child) -> None:
        if child.process is not None:
            child.process.terminate()
            asyncio.get_running_loop().call_later(self._options.grace_s, self._kill_if_running, child, child.process)

    def _kill_if_running(self, child: Child, process: _Process) -> None:
        if child.process is process:
            child.killed = True
            process.kill_group()


class _Process(asyncio.SubprocessProtocol):
    """One process: its lines, and the moments at which it has exited and at which its pipes are closed.

    The two are told apart: asyncio's own `wait` waits for both, and a grandchild may hold the pipes for ever.
    """

    def __init__(self, line_bytes_max: int, show: Callable[[Stream, str], None]) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[int] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._line_bytes_max = line_bytes_max
        self._show = show
        self._rest: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self._transport: asyncio.SubprocessTransport

    @property
    def pid(self) -> int:
        """The process's id, which is its group's as well."""
        return self._transport.get_pid()

    def terminate(self) -> None:
        """Ask it to finish."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.terminate()

    def kill_group(self) -> None:
        """End it and everything it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        """It printed something: whole lines go on, a line that does not end goes on in pieces."""
        stream: Stream = "stdout" if fd == 1 else "stderr"
        *lines, rest = (self._rest[stream] + cast("bytes", data)).split(b"\n")
        if len(rest) > self._line_bytes_max:
            lines, rest = [*lines, rest], b""
        self._rest[stream] = rest
        for line in lines:
            self._show(stream, self._text(line))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """A pipe is closed; what came without an end of line is shown now."""
        stream: Stream = "stdout" if fd == 1 else "stderr"
        if rest := self._rest[stream]:
            self._rest[stream] = b""
            self._show(stream, self._text(rest))

    def process_exited(self) -> None:
        """It is gone."""
        code = self._transport.get_returncode()
        if not self.exited.done():
            self.exited.set_result(-signal.SIGKILL if code is None else code)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """It is gone and its pipes are closed."""
        if not self.closed.done():
            self.closed.set_result(None)

    def _text(self, line: bytes) -> str:
        return line[: self._line_bytes_max].decode(errors="replace").rstrip("\r")


def names_of(files: Sequence[Path]) -> list[str]:
    """A short name for each file, the second of the same name with a number."""
    names: list[str] = []
    for file in files:
        count = sum(name.partition("#")[0] == file.stem for name in names)
        names.append(file.stem if not count else f"{file.stem}#{count + 1}")
    return names


def exit_text(code: int, ran_s: float | None = None) -> str:
    """An exit as one says it."""
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"got signal {-code}"
    else:
        how = f"ended with exit code {code}"
    why = ": a setting is wrong, or the gate refuses it" if code == EXIT_REFUSED else ""
    return how + why if ran_s is None else f"{how} after {ran_s:.1f} s{why}"
