"""Frames are cut from the stream where they end, however the stream comes in pieces (A6)."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from uvicorn.server import ServerState
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from agentgate.model.link import LINK_PATH, SUBPROTOCOL
from agentgate.server import framing
from agentgate.server.doorkeeper import Doorkeeper
from agentgate.server.link import LinkProtocol, Links
from agentgate.server.options import ServerOptions

SIZE_MAX = 100_000
REQUEST = (
    f"GET {LINK_PATH} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Protocol: {SUBPROTOCOL}\r\n\r\n"
).encode()

sizes = st.sampled_from([0, 1, 125, 126, 127, 300, 65_535, 65_536, SIZE_MAX]) | st.integers(0, 300)
payloads = sizes.map(lambda size: bytes(index % 251 for index in range(size)))
cuts = st.lists(st.integers(0, 4_000), max_size=40)


class Message(NamedTuple):
    """What a client says: in one frame or several, perhaps with a ping between."""

    parts: list[bytes]
    ping: bool

    def frames(self) -> list[Frame]:
        last = len(self.parts) - 1
        said = [
            Frame(Opcode.CONT if number else Opcode.TEXT, part, fin=number == last)
            for number, part in enumerate(self.parts)
        ]
        return [said[0], Frame(Opcode.PING, b"?"), *said[1:]] if self.ping else said


messages = st.builds(Message, st.lists(payloads, min_size=1, max_size=3), st.booleans())


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    abort = close


class Peer:
    """Keeps what it is told."""

    serves = False

    def __init__(self) -> None:
        self.said: list[bytes | str] = []

    def on_frame(self, data: bytes | str) -> None:
        self.said.append(data)

    def closed(self) -> None:
        pass

    def end(self, reason: str) -> None:
        pass


def connected() -> tuple[LinkProtocol, Peer, Transport]:
    """A link after its handshake."""
    peer, transport = Peer(), Transport()
    options = ServerOptions()
    links = Links(lambda _send, _close, _identity: peer, options, Doorkeeper(options, lambda: 0.0))
    protocol = links.protocol()(server_state=ServerState())
    protocol.connection_made(transport)
    protocol.data_received(REQUEST)
    return protocol, peer, transport


def pieces(stream: bytes, places: list[int]) -> list[bytes]:
    """The stream in pieces of these sizes, again and again."""
    found: list[bytes] = []
    sizes = [place for place in places if place] or [len(stream)]
    while stream:
        size = sizes[len(found) % len(sizes)]
        found.append(stream[:size])
        stream = stream[size:]
    return found


@given(st.lists(messages, max_size=5), cuts)
def test_every_message_arrives_once_whole_and_in_order(said: list[Message], places: list[int]) -> None:
    """As many, as large and in whatever pieces; a ping between two parts of a message is answered."""

    async def talk() -> tuple[list[bytes | str], bytes]:
        protocol, peer, transport = connected()
        stream = b"".join(frame.serialize(mask=True) for message in said for frame in message.frames())
        for piece in pieces(stream, places):
            protocol.data_received(piece)
        protocol.connection_lost(None)
        return peer.said, transport.written

    heard, answered = asyncio.run(talk())
    assert heard == [b"".join(message.parts) for message in said]
    assert answered.count(b"\x8a\x01?") == sum(message.ping for message in said)


@given(payloads, st.binary(min_size=2, max_size=60))
def test_what_is_no_frame_ends_the_connection_and_raises_nothing(payload: bytes, noise: bytes) -> None:
    """Whatever comes: the session hears whole messages only, and the stream is never read past its end."""

    async def talk() -> tuple[list[bytes | str], bool]:
        protocol, peer, transport = connected()
        protocol.data_received(Frame(Opcode.TEXT, payload).serialize(mask=True))
        protocol.data_received(b"\x81" + noise)
        unmasked = noise[0] < framing.MASKED
        protocol.connection_lost(None)
        return peer.said, transport.closed or not unmasked

    heard, ended = asyncio.run(talk())
    assert heard[0] == payload
    assert ended


@given(payloads)
def test_a_message_that_leaves_is_read_by_a_client(payload: bytes) -> None:
    """The header is the one that websockets reads."""
    client = ClientProtocol(parse_uri("ws://localhost/"), state=State.OPEN)
    client.receive_data(framing.framed(payload))
    [event] = client.events_received()
    assert isinstance(event, Frame)
    assert (event.opcode, event.fin, bytes(event.data)) == (Opcode.TEXT, True, payload)
