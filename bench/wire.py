"""WebSocket frames on a bare protocol, as lean as they get: the ends of a benchmark must cost less than its middle.

A client has to mask what it sends; it does so with a key of zeros, which is allowed and leaves the bytes as they are.
What is read is never unmasked, for the same reason: the only other end is this file again, or a server, which sends
unmasked. Messages come in the callback that read them, and those queued meanwhile leave together, as one JSON-RPC
batch, as the SDK's do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from agentgate.model.link import LINK_PATH, SUBPROTOCOL

TEXT: Final = 0x81  # a whole text message in one frame
CLOSE: Final = 0x88
MASKED: Final = 0x80
SHORT_MAX: Final = 125
MEDIUM: Final = 126
LONG: Final = 127
MEDIUM_MAX: Final = 0xFFFF
MASK: Final = bytes(4)
HEAD_END: Final = b"\r\n\r\n"

OnMessage = Callable[["Wire", bytes], None]


class Wire(asyncio.Protocol):
    """One connection. `is_client` masks; `head` is what has to be said and answered before the first frame."""

    def __init__(self, on_message: OnMessage, *, is_client: bool, head: bytes = b"") -> None:
        self._on_message = on_message
        self._mask_bit = MASKED if is_client else 0
        self._mask = MASK if is_client else b""
        self._head = head
        self._unread = b""
        self._outbox: list[bytes] = []
        self._transport: asyncio.Transport
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed = ""  # why, once it is

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say the head, if there is one."""
        self._transport = cast("asyncio.Transport", transport)
        if self._head:
            self._transport.write(self._head)
        else:
            self.opened.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Hand out every complete message, then send what was queued meanwhile."""
        self._unread = self._unread + data if self._unread else data
        if not self.opened.done() and not self._take_head():
            return
        start = 0
        while (frame := self._frame_at(start)) is not None:
            first, begin, start = frame
            if first == TEXT:
                self._on_message(self, self._unread[begin:start])
            elif first == CLOSE:
                self.closed = self._unread[begin + 2 : start].decode() or "without a reason"
                self._transport.close()
        self._unread = self._unread[start:]
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remember that nothing more will come."""
        self.closed = self.closed or str(exc or "the other end hung up")
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self.closed))

    def post(self, message: bytes) -> None:
        """Queue a message until `flush`."""
        self._outbox.append(message)

    def flush(self) -> None:
        """Send what is queued as one frame."""
        if not self._outbox:
            return
        text = self._outbox[0] if len(self._outbox) == 1 else b"[" + b",".join(self._outbox) + b"]"
        self._outbox.clear()
        self._transport.write(self._header(len(text)) + self._mask + text)

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def _take_head(self) -> bool:
        head, end, rest = self._unread.partition(HEAD_END)
        if not end:
            return False
        self._unread = rest
        if head.startswith(b"HTTP/1.1 101 "):
            self.opened.set_result(None)
        else:
            self.opened.set_exception(ConnectionError(head.decode(errors="replace") + rest.decode(errors="replace")))
        return True

    def _header(self, size: int) -> bytes:
        if size <= SHORT_MAX:
            return bytes((TEXT, self._mask_bit | size))
        if size <= MEDIUM_MAX:
            return bytes((TEXT, self._mask_bit | MEDIUM)) + size.to_bytes(2, "big")
        return bytes((TEXT, self._mask_bit | LONG)) + size.to_bytes(8, "big")

    def _frame_at(self, start: int) -> tuple[int, int, int] | None:
        """First byte, begin and end of the message at this place; None while it is not complete."""
        unread = self._unread
        if len(unread) < start + 2:
            return None
        size = unread[start + 1] & ~MASKED
        begin = start + 2
        if size >= MEDIUM:
            begin += 2 if size == MEDIUM else 8
            size = int.from_bytes(unread[start + 2 : begin], "big")
        if unread[start + 1] & MASKED:
            begin += len(MASK)
        end = begin + size
        return (unread[start], begin, end) if end <= len(unread) else None


async def connect_to_gate(port: int, on_message: OnMessage) -> Wire:
    """A link to the gate; the caller says hello."""
    head = (
        f"GET {LINK_PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
    )
    return await _connect(port, on_message, head.encode())


async def connect_directly(port: int, on_message: OnMessage) -> Wire:
    """The same frames to an agent's own socket, without a gate between and without a handshake."""
    return await _connect(port, on_message, b"")


async def listen(on_message: OnMessage) -> int:
    """Take direct connections on a free port of loopback, as long as the loop runs; returns the port."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Wire(on_message, is_client=False), "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    return port


async def _connect(port: int, on_message: OnMessage, head: bytes) -> Wire:
    loop = asyncio.get_running_loop()
    _, wire = await loop.create_connection(lambda: Wire(on_message, is_client=True, head=head), "127.0.0.1", port)
    await wire.opened
    return wire
