"""What the link needs of a connection: whole messages in order, and one way to hear of the end.

The SDK's own connection is a WebSocket (`sdk.websocket`); a simulation hands in its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol


class LinkClosed(ConnectionError):
    """The connection ended, or could not be made; the message says why."""


class Connection(Protocol):
    """An ordered stream of messages. Any `OSError` (`LinkClosed` is one) means that it has ended."""

    async def send(self, data: bytes) -> None:
        """Hand over one message; waits while the peer is slow to read."""
        ...

    async def recv(self) -> bytes | str:
        """The next message; raises `LinkClosed` after the last."""
        ...

    async def close(self) -> None:
        """End it; what was sent before still arrives."""
        ...


Connect = Callable[[], Awaitable[Connection]]


async def close_quietly(connection: Connection, within_s: float) -> None:
    """End a connection that nobody needs any more, whatever state it is in."""
    with contextlib.suppress(OSError):
        async with asyncio.timeout(within_s):
            await connection.close()
