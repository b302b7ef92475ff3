"""A small server of raw bytes: it says exactly what a test wants said, however wrong, and sees what becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

PATIENCE_S = 10.0


class Visit:
    """One connection, as the server sees it."""

    def __init__(self, server: WildServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.number = len(server.visits) + 1  # of the connection
        self._server = server
        self.requests: list[bytes] = []
        self.ended = asyncio.Event()  # the other side has closed it
        self._reader = reader
        self._writer = writer

    async def request(self) -> bytes:
        """The next request, head and body."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        body = await self._reader.readexactly(int(lines.get(b"content-length", b"0")))
        self.requests.append(head + body)
        self._server.asked.set()
        return head + body

    async def say(self, data: bytes) -> None:
        """Send bytes; raises `ConnectionError` when nobody takes them any more."""
        self._writer.write(data)
        await self._writer.drain()

    async def drip(self, data: bytes, every_s: float) -> None:
        """Send byte after byte."""
        for at in range(len(data)):
            await self.say(data[at : at + 1])
            await asyncio.sleep(every_s)

    async def flood(self, piece: bytes) -> None:
        """Send the same for ever, or until nobody takes it any more."""
        while True:
            await self.say(piece)

    async def hang(self) -> None:
        """Say nothing until the other side has had enough."""
        while await self._reader.read(65_536):
            pass

    def close(self) -> None:
        """Say good-bye."""
        self._writer.close()

    def reset(self) -> None:
        """Go without a good-bye."""
        connection = self._writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Behaviour = Callable[[Visit], Awaitable[None]]


class WildServer:
    """Where it listens, and everybody who came."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.port = 0
        self.visits: list[Visit] = []
        self.asked = asyncio.Event()  # a request has come

    @property
    def url(self) -> str:
        """Its address as an endpoint."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[bytes]:
        """All requests, in order of their connections."""
        return [request for visit in self.visits for request in visit.requests]

    async def all_ended(self) -> None:
        """Wait until the other side has closed every connection."""
        async with asyncio.timeout(PATIENCE_S):
            for visit in self.visits:
                await visit.ended.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = Visit(self, reader, writer)
        self.visits.append(visit)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self.behaviour(visit)
                if not writer.is_closing():
                    await visit.hang()
        finally:
            visit.ended.set()
            writer.close()


@contextlib.asynccontextmanager
async def wild_server(behaviour: Behaviour, context: ssl.SSLContext | None = None) -> AsyncIterator[WildServer]:
    """A server that does this with every connection; its connections end with it."""
    wild = WildServer(behaviour)
    server = await asyncio.start_server(wild.serve, "127.0.0.1", 0, ssl=context)
    wild.port = server.sockets[0].getsockname()[1]
    try:
        yield wild
    finally:
        server.close()
        for visit in wild.visits:
            visit.close()


def answering(*parts: bytes) -> Behaviour:
    """Answer each request of a connection with the same bytes."""

    async def behave(visit: Visit) -> None:
        while True:
            await visit.request()
            for part in parts:
                await visit.say(part)

    return behave


def ok(body: bytes = b'{"ok":true}', *lines: str, status: str = "200 OK") -> bytes:
    """A whole answer."""
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *lines))
    return head.encode() + b"\r\n" + body
