"""A runner whose object lives in a process of its own, so that a busy event loop cannot keep it from working."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, TypeVarTuple, Unpack, cast

import msgspec
import structlog

from agentgate.errors import StoreBadInput, StoreBroke
from agentgate.runtime import hosted
from agentgate.runtime.hosted import LENGTH, Reply, Request
from agentgate.runtime.signature import ENCODER, answer_decoder

log = structlog.get_logger(__name__)

Arguments = TypeVarTuple("Arguments")
Answer = TypeVar("Answer")

PATIENCE_S: Final = 10.0  # for one answer: twice the longest that SQLite waits for a lock
STOP_S: Final = 5.0  # what is being written may be finished; then it is ended by force

_ERRORS: Final = {kind.__name__: kind for kind in hosted.KINDS}
_REPLIES: Final = msgspec.json.Decoder(Reply)


class _Waiter(NamedTuple):
    answer: asyncio.Future[Any]
    decoder: msgspec.json.Decoder[Any]

    def settle(self, reply: Reply) -> None:
        """Hand over what came back; a waiter that left has cancelled its future."""
        if self.answer.done():
            return
        if reply.error:
            self.answer.set_exception(_ERRORS.get(reply.error, RuntimeError)(reply.text))
        else:
            self.answer.set_result(self.decoder.decode(reply.answer))


class ProcessRunner:
    """One child process, from `start` to `close`. It dies with this process, however this process dies.

    When the child dies, everybody who waits is told `StoreBroke`: what they asked for may or may not be on disk. The
    same when it does not answer for `patience_s`: then it is ended by force, so that another can take its place.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._shared: tuple[int, ...] = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: _Link | None = None

    @property
    def alive(self) -> bool:
        """From `start` to `close`, unless the child dies before."""
        return self._link is not None and not self._link.is_down

    def share(self, *descriptors: int) -> None:
        """Let the next child have these files open, too."""
        self._shared = descriptors

    async def start(self, build: Callable[[Unpack[Arguments]], object], *arguments: *Arguments) -> None:
        """Start the process and build the object in it."""
        await self.close()
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: ASYNC220, S603 - takes about a millisecond; runs our own module
                [sys.executable, "-P", "-m", hosted.__name__, str(number)],  # -P: nothing from the current folder
                stdin=subprocess.DEVNULL,
                pass_fds=(number, *self._shared),
            )
        loop = asyncio.get_running_loop()
        _, self._link = await loop.create_connection(_Link, sock=ours)
        await self._link.ask(f"{build.__module__}:{build.__qualname__}", arguments, msgspec.json.Decoder(None))

    async def run(self, method: Callable[[Any, Unpack[Arguments]], Answer], *arguments: *Arguments) -> Answer:
        """Call a method of the object after everything that was asked for before."""
        if self._link is None:
            raise StoreBroke("the store is closed")
        asked: asyncio.Future[Answer] = self._link.ask(method.__name__, arguments, answer_decoder(method))
        patience = asyncio.get_running_loop().call_later(self._patience_s, self._give_up, self._process)
        try:
            return await asked
        finally:
            patience.cancel()

    def _give_up(self, process: subprocess.Popen[bytes] | None) -> None:
        log.error("store_process_killed", reason="it did not answer", waited_s=self._patience_s)
        if process is not None:
            process.kill()
        if self._link is not None and process is self._process:
            self._link.hang_up()

    async def close(self) -> None:
        """Hang up; the child finishes what it has begun and ends."""
        link, self._link = self._link, None
        process, self._process = self._process, None
        if link is not None:
            link.hang_up()
        if process is not None:
            await asyncio.to_thread(_end, process)


class _Link(asyncio.Protocol):
    """Requests out, replies in, in the same order."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[_Waiter] = deque()  # bounded by who asks: each batcher has one batch under way
        self._received = bytearray()

    @property
    def is_down(self) -> bool:
        """Whether there is nobody at the other end."""
        return self._transport is None or self._transport.is_closing()

    def ask(self, name: str, arguments: tuple[Any, ...], decoder: msgspec.json.Decoder[Any]) -> asyncio.Future[Any]:
        """Send a request; the future is its answer."""
        if self._transport is None or self.is_down:
            raise StoreBroke("the process of the store is gone")
        try:
            body = msgspec.Raw(ENCODER.encode(arguments))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise StoreBadInput(f"the request cannot be stored: {error}") from error
        waiter = _Waiter(asyncio.get_running_loop().create_future(), decoder)
        self._waiting.append(waiter)
        self._transport.write(hosted.framed(Request(name, body)))
        return waiter.answer

    def hang_up(self) -> None:
        """Nothing more will be asked."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The child can be asked."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass

    def data_received(self, data: bytes) -> None:
        """Hand out every complete reply."""
        self._received += data
        start = 0
        while len(self._received) - start >= LENGTH.size:
            [size] = LENGTH.unpack_from(self._received, start)
            end = start + LENGTH.size + size
            if len(self._received) < end:
                break
            reply = _REPLIES.decode(bytes(self._received[start + LENGTH.size : end]))
            self._waiting.popleft().settle(reply)
            start = end
        del self._received[:start]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The child is gone, or we hung up."""
        lost = Reply(msgspec.Raw(), StoreBroke.__name__, "the process of the store ended before it had answered")
        while self._waiting:
            self._waiting.popleft().settle(lost)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the child, for a while."""
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that waits for a broken disk cannot even be killed
            process.wait(STOP_S)
