"""The scripted gate on a real socket, and agents as real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from agentgate.model.link import LINK_PATH, SUBPROTOCOL
from agentgate.sdk.connection import LinkClosed
from tests.integration.sdk_gate import ScriptedGate, Wire

PATIENCE_S = 20.0


@asynccontextmanager
async def listening(gate: ScriptedGate) -> AsyncIterator[str]:
    """Serve the link with this gate; gives its address."""

    async def accept(socket: ServerConnection) -> None:
        assert socket.subprotocol == SUBPROTOCOL
        gate.wires.append(Wire(gate))
        async with asyncio.TaskGroup() as group:
            group.create_task(down(socket, gate.wire))
            await up(socket, gate.wire)
            gate.wire.cut()

    def refuse(socket: ServerConnection, request: Request) -> Response | None:
        return None if request.path == LINK_PATH else socket.respond(HTTPStatus.NOT_FOUND, "the link is elsewhere\n")

    options: dict[str, Any] = {"subprotocols": [Subprotocol(SUBPROTOCOL)], "ping_interval": None}
    async with serve(accept, "127.0.0.1", 0, process_request=refuse, **options) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def up(socket: ServerConnection, wire: Wire) -> None:
    try:
        async for data in socket:
            assert isinstance(data, str)  # messages of the link are text
            await wire.send(data.encode())
    except (ConnectionClosed, LinkClosed):
        return


async def down(socket: ServerConnection, wire: Wire) -> None:
    try:
        while True:
            await socket.send(await wire.recv(), text=True)
    except (ConnectionClosed, LinkClosed):
        await socket.close()


class AgentProcess:
    """A Python file running as a process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: list[str] = []

    async def says(self, words: str) -> str:
        """The next line on stderr that contains these words."""
        assert self._process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            while line := (await self._process.stderr.readline()).decode():
                self.lines.append(line)
                if words in line:
                    return line
        raise AssertionError(f"it ended without saying {words!r}: {self.lines}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ends(self) -> int:
        """Its exit code."""
        assert self._process.stderr is not None
        async with asyncio.timeout(PATIENCE_S):
            self.lines.extend((await self._process.stderr.read()).decode().splitlines(keepends=True))
            return await self._process.wait()

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


@asynccontextmanager
async def running(folder: Path, code: str, url: str, **environment: str) -> AsyncIterator[AgentProcess]:
    """Run this code as `agent.py`."""
    path = folder / "agent.py"
    path.write_text(code, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(path), stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "AGENTGATE_URL": url, **environment},
    )  # fmt: skip
    agent = AgentProcess(process)
    try:
        yield agent
    finally:
        agent.kill()
        await process.wait()
