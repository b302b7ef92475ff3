"""The socket side of the link: what it lets in, what it carries, and whom it cuts."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin, Subprotocol

from agentgate.model import Identity
from agentgate.model.link import SUBPROTOCOL
from agentgate.server.doorkeeper import Doorkeeper
from agentgate.server.link import Links
from agentgate.server.options import ServerOptions
from tests.integration.realtime import realtime

KIB = 1024
LINK = [Subprotocol(SUBPROTOCOL)]


class Peer:
    """What stands behind the socket: keeps what came, and does what a message asks for."""

    serves = False

    def __init__(self, send: Callable[[bytes], None], close: Callable[[str], None]) -> None:
        self.send = send
        self.close = close
        self.frames: list[bytes] = []
        self.closings = 0

    def on_frame(self, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self.frames.append(data)
        word, _, number = data.partition(b" ")
        if word == b"echo":
            self.send(number)
        elif word == b"flood":
            for _ in range(int(number)):
                self.send(b"x" * 64 * KIB)
        elif word == b"bye":
            self.send(b"last words")
            self.close("you asked for it " + "€" * 100)

    def closed(self) -> None:
        self.closings += 1

    def end(self, reason: str) -> None:
        self.close(reason)


class Room:
    """One listening socket, and everybody behind it."""

    def __init__(self, links: Links, peers: list[Peer], port: int) -> None:
        self.links = links
        self.peers = peers
        self.port = port

    def dial(self, path: str = "/link", **more: Any) -> connect:
        more.setdefault("subprotocols", LINK)
        return connect(f"ws://127.0.0.1:{self.port}{path}", proxy=None, **more)

    async def until(self, happened: Callable[[], bool]) -> None:
        for _ in range(1_000):
            if happened():
                return
            await asyncio.sleep(0.01)
        pytest.fail("it did not happen within ten seconds")


@contextlib.asynccontextmanager
async def room(**options: Any) -> AsyncIterator[Room]:
    peers: list[Peer] = []

    def meet(send: Callable[[bytes], None], close: Callable[[str], None], _: Identity) -> Peer:
        peers.append(Peer(send, close))
        return peers[-1]

    server_options = ServerOptions(**options)
    links = Links(meet, server_options, Doorkeeper(server_options, lambda: 0.0))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(nothing_here, ws=links.protocol(), lifespan="off", log_config=None, http="httptools")
        server = Quiet(config)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[listener]))
            yield Room(links, peers, listener.getsockname()[1])
            server.should_exit = True


class Quiet(uvicorn.Server):
    """Without signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


async def nothing_here(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def close_code(link: ClientConnection) -> tuple[int, str]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            await link.recv()
    return link.close_code or 0, link.close_reason or ""


# --- what it lets in


@pytest.mark.parametrize(
    ("path", "more", "status", "sentence"),
    [
        ("/", {}, 404, "the link is at /link"),
        ("/link/", {}, 404, "the link is at /link"),
        ("/link", {"subprotocols": None}, 400, "missing subprotocol"),
        ("/link", {"subprotocols": [Subprotocol("agentgate.v0")]}, 400, "expected one of agentgate.v1"),
        ("/link", {"origin": Origin("http://evil.example")}, 403, "evil.example"),
        ("/link", {"origin": Origin("http://127.0.0.1:7070")}, 403, "127.0.0.1:7070"),
        ("/link", {"additional_headers": {"Host": "evil.example"}}, 403, "evil.example' is not this machine"),
    ],
)
@realtime
async def test_only_programs_of_this_machine_that_speak_the_protocol_get_a_link(
    path: str, more: dict[str, Any], status: int, sentence: str
) -> None:
    """A wrong path, protocol, Origin or Host is refused with a status and a sentence, and no session is made."""
    async with room() as here:
        with pytest.raises(InvalidStatus) as refused:
            async with here.dial(path, **more):
                pass
        assert refused.value.response.status_code == status
        assert sentence in (refused.value.response.body or b"").decode()
        assert (here.peers, here.links.refused, here.links.accepted) == ([], 1, 0)


async def dial_raw(port: int, *headers: bytes) -> tuple[bytes, asyncio.StreamWriter]:
    """An upgrade with exactly these headers beside the necessary ones; the answer's head, and the open connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    necessary = (
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Protocol: agentgate.v1",
    )
    writer.write(b"\r\n".join((b"GET /link HTTP/1.1", *headers, *necessary, b"", b"")))
    return await reader.readuntil(b"\r\n\r\n"), writer


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((b"Host: evil.example:7070",), b" 403 "),
        ((b"Host: 127.0.0.1.evil.example",), b" 403 "),
        ((b"Host: localhost@evil.example",), b" 403 "),
        ((), b" 403 "),
        ((b"Host: localhost", b"Host: evil.example"), b" 403 "),
        ((b"Host: localhost", b"Origin: null"), b" 403 "),
        ((b"Host: localhost:7070",), b" 101 "),
        ((b"Host: [::1]:7070",), b" 101 "),
        ((b"Host: LOCALHOST",), b" 101 "),
    ],
)
@realtime
async def test_a_name_that_was_pointed_here_is_refused(headers: tuple[bytes, ...], status: bytes) -> None:
    """A page under a name that resolves to loopback (DNS rebinding) gets no link: only loopback names do."""
    async with room() as here:
        answer, writer = await dial_raw(here.port, *headers)
        writer.close()
        assert status in answer.splitlines()[0]


@realtime
async def test_links_are_bounded_and_a_stopping_gate_takes_none() -> None:
    """B14: beyond the bound an upgrade is answered 503, as it is by a gate that stops; those inside stay."""
    async with room(connections_max=1) as here, here.dial() as link:
        for _ in range(2):
            with pytest.raises(InvalidStatus, match="503"):
                async with here.dial():
                    pass
            here.links.is_stopping = True
        await link.send("echo 1")
        assert await link.recv(decode=False) == b"1"


# --- what it carries


@realtime
async def test_messages_arrive_whole_and_in_order() -> None:
    """Three thousand pipelined messages, one of them in fragments, are handled in order; a neighbour is not held up."""
    async with room() as here, here.dial() as flood, here.dial() as neighbour:
        for number in range(3_000):
            await flood.send(f"echo {number}")
        await flood.send(["echo ", "in ", "three parts"])
        await neighbour.send("echo hello")
        async with asyncio.timeout(2):
            assert await neighbour.recv(decode=False) == b"hello"
        answers = [await flood.recv(decode=False) for _ in range(3_001)]
        assert answers == [*(str(number).encode() for number in range(3_000)), b"in three parts"]


@realtime
async def test_a_message_that_is_too_large_ends_the_link() -> None:
    """B14: a message above the limit, in one frame or in many, closes with 1009 before it is in memory."""
    async with room(frame_bytes_max=64 * KIB) as here:
        for message in ("x" * (64 * KIB + 1), ["x" * KIB] * 65):
            async with here.dial() as link:
                await link.send(message)
                assert (await close_code(link))[0] == 1009
        await here.until(lambda: [peer.closings for peer in here.peers] == [1, 1])
        assert [peer.frames for peer in here.peers] == [[], []]


@realtime
async def test_binary_messages_are_refused() -> None:
    """Messages of the link are text."""
    async with room() as here, here.dial() as link:
        await link.send(b"\x00")
        assert await close_code(link) == (1003, "messages of the link are text")


@realtime
async def test_a_session_closes_with_its_reason_after_its_last_words() -> None:
    """What was sent before the end arrives, then the reason, cut to what a close frame carries; closed is told once."""
    async with room() as here, here.dial() as link:
        await link.send("bye")
        await link.send("echo nobody listens any more")
        assert await link.recv(decode=False) == b"last words"
        code, reason = await close_code(link)
        assert (code, len(reason.encode()) <= 123) == (1008, True)
        assert reason.startswith("you asked for it €")
        await here.until(lambda: here.peers[0].closings == 1)
        assert here.peers[0].frames == [b"bye"]
        assert not here.links.open


@realtime
async def test_a_peer_that_goes_away_is_noticed_once() -> None:
    """A good-bye and a cut connection both end in one `closed`."""
    async with room() as here:
        async with here.dial():
            pass
        async with here.dial() as link:
            link.transport.abort()
        await here.until(lambda: [peer.closings for peer in here.peers] == [1, 1])
        assert not here.links.open


# --- whom it cuts


@realtime
async def test_a_peer_that_does_not_read_is_cut() -> None:
    """B14: what waits for a peer is bounded; one that sends and never reads is cut, and its session told."""
    async with room(queue_bytes_max=256 * KIB) as here:
        answer, writer = await dial_raw(here.port, b"Host: localhost")
        assert b" 101 " in answer
        words = b"flood 1000"
        writer.write(b"\x81" + bytes((0x80 | len(words),)) + bytes(4) + words)
        await here.until(lambda: bool(here.peers) and here.peers[0].closings == 1)
        assert here.links.cut == 1
        writer.close()


@realtime
async def test_a_silent_peer_is_cut_and_a_speaking_one_is_not() -> None:
    """A8: a link without any frame for `idle_s` is cut; any message puts that off."""
    async with room(idle_s=1.0) as here, here.dial(ping_interval=None) as silent, here.dial(ping_interval=None) as loud:
        for _ in range(6):
            await asyncio.sleep(0.3)
            await loud.send("echo here")
        assert (await close_code(silent))[0] == 1006
        assert await loud.recv(decode=False) == b"here"
        assert here.links.cut == 1


@realtime
async def test_a_stopping_server_says_so() -> None:
    """A6: when the server stops, links are closed with 1012: the agents know that the gate will be back."""
    async with room() as here:
        link = await here.dial()
        for protocol in list(here.links.open):
            protocol.shutdown()
        assert await close_code(link) == (1012, "the gate stops")


@realtime
async def test_pings_whose_answers_nobody_reads_are_cut_off() -> None:
    """B14: what waits for a peer is bounded, whatever it is; half a million pings are not kept in memory."""
    async with room(queue_bytes_max=64 * KIB) as here:
        _, writer = await dial_raw(here.port, b"Host: localhost")
        pings = (b"\x89\xfd" + bytes(4) + b"?" * 125) * 1_000
        with contextlib.suppress(ConnectionError):
            for _ in range(500):
                writer.write(pings)
                await writer.drain()
        await here.until(lambda: here.links.cut == 1)
        writer.close()
