"""The socket side of the link: WebSocket frames in, WebSocket frames out, as cheap as they get.

uvicorn accepts the connection, reads the request, and hands the transport to this protocol when the request asks for
a WebSocket; so the link shares the port with the HTTP API. From there on frames are cut from the stream
(`framing`), websockets' sans-I/O protocol looks after those that are no plain message, and messages go straight into
the session, in the callback that read them: no task, no queue and no ASGI event per message. What that saves is in
docs/explanation/performance.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

import structlog
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from agentgate.errors import CODES
from agentgate.model import Identity, Problem
from agentgate.model.link import LINK_PATH, SUBPROTOCOL
from agentgate.server import framing
from agentgate.server.doorkeeper import Doorkeeper
from agentgate.server.options import ServerOptions
from agentgate.server.turns import Turns

BACKLOG_MAX: Final = 64  # frames read and not handled; beyond them the socket is left alone
BACKLOG_BYTES_MAX: Final = 262_144
FRAME_BYTES: Final = 64  # what a frame counts for beside its message
CLOSE_S: Final = 2.0  # for the peer to take the last frames and answer the good-bye
REASON_BYTES_MAX: Final = 123  # what a WebSocket close frame can carry

HEAD_END: Final = b"\r\n\r\n"
MESSAGE_PARTS: Final = frozenset({Opcode.TEXT, Opcode.BINARY, Opcode.CONT})

POLICY_VIOLATION: Final = 1008
UNSUPPORTED_DATA: Final = 1003
SERVICE_RESTART: Final = 1012

log = structlog.get_logger("agentgate.server")

# websockets writes every frame to its log when that listens to details; payloads are nobody's business, at any level.
_SILENT: Final = logging.getLogger("agentgate.server.websocket")
_SILENT.setLevel(logging.ERROR)


class Session(Protocol):
    """What the gateway makes of one connection."""

    def on_frame(self, data: bytes | str) -> None:
        """Take one message."""
        ...

    @property
    def serves(self) -> bool:
        """Whether an agent is at the other end."""
        ...

    def closed(self) -> None:
        """The connection has ended."""
        ...

    def end(self, reason: str) -> None:
        """End the connection, for this reason."""
        ...


Connect = Callable[[Callable[[bytes], None], Callable[[str], None], Identity], Session]


@dataclass
class Links:
    """Everything that is shared by the links of one server; plain integers for the metrics."""

    connect: Connect
    options: ServerOptions
    doorkeeper: Doorkeeper
    open: set[LinkProtocol] = field(default_factory=set)
    turns: Turns = field(default_factory=Turns)
    is_stopping: bool = False
    accepted: int = 0
    refused: int = 0
    cut: int = 0  # for not reading, or for silence

    def end_fallen(self) -> None:
        """End the links of those who would not be let in any more."""
        for link in list(self.open):
            if link.identity is not None and not self.doorkeeper.stands(link.identity):
                link.end("the token of this link was revoked or has expired")

    def protocol(self) -> type[LinkProtocol]:
        """The class that uvicorn makes an object of for every upgrade."""
        return type("BoundLinkProtocol", (LinkProtocol,), {"links": self})


class LinkProtocol(asyncio.Protocol):
    """One connection."""

    links: Links  # set by `Links.protocol`

    def __init__(self, *, server_state: ServerState, **_: object) -> None:
        options = self.links.options
        self._connections = cast("set[object]", server_state.connections)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._session: Session | None = None
        self.identity: Identity | None = None  # once it was let in
        self._unread = bytearray()  # the beginning of a frame
        self._parts: list[bytes] = []  # of a message in several frames
        self._is_in_parts = False  # what comes next belongs to a message that has begun
        self._backlog: deque[bytes | Frame] = deque()  # read, not handled yet: messages, and frames of another kind
        self._backlog_bytes = 0
        self._is_paused = False
        self.is_in_line = False
        self._is_ending = False
        self._is_closed_here = False  # what the peer says after that is not heard
        self._heard_at = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._ws = ServerProtocol(
            origins=[None],  # no page has business here
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            extensions=None,  # compressing small messages costs more than sending them
            max_size=options.frame_bytes_max,
            logger=_SILENT,
        )

    # --- what uvicorn and asyncio call

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Uvicorn hands over its transport."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        self.links.open.add(self)
        self._set_timer(self.links.options.idle_s, self._check_idle)

    def data_received(self, data: bytes) -> None:
        """Bytes from the peer; the first call brings the request itself."""
        self._heard_at = self._loop.time()
        if self._ws.state is State.CONNECTING:
            head, end, data = data.partition(HEAD_END)
            self._receive(head + end)
        if self._unread:
            self._unread += data
            if framing.place(self._unread, 0, self.links.options.frame_bytes_max) is None:
                return
            data = bytes(self._unread)
            self._unread.clear()
        self._cut_frames(data)
        self.links.turns.take(self)
        self._keep_pace()

    def eof_received(self) -> None:
        """The peer sends nothing more; the transport closes itself."""
        self._ws.receive_eof()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The connection is gone, for whatever reason."""
        self._connections.discard(self)
        self.links.open.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        while self._backlog:  # what it said before it went counts
            self.handle_next()
        self._leave()

    def shutdown(self) -> None:
        """Uvicorn stops."""
        self.close("the gate stops", code=SERVICE_RESTART)

    def end(self, reason: str) -> None:
        """From now on nothing of it counts."""
        if self._session is not None:
            self._session.end(reason)

    # --- what the turns of the loop call

    @property
    def serves(self) -> bool:
        """Whether it is an agent's."""
        return self._session is not None and self._session.serves

    @property
    def has_frames(self) -> bool:
        """Whether something is read and not handled yet."""
        return bool(self._backlog)

    def handle_next(self) -> int:
        """Handle the oldest frame; returns its size in bytes."""
        frame = self._backlog.popleft()
        size = _size(frame)
        self._backlog_bytes -= size
        if self._session is not None and not self._is_closed_here:
            self._handle(frame, self._session)
        if self._is_paused:
            self._keep_pace()
        return size

    # --- what the session calls

    def send(self, data: bytes) -> None:
        """Send one message, or cut a peer that does not read what it was sent."""
        if self._ws.state is not State.OPEN or self._transport.is_closing():
            return
        self._put(framing.framed(data))

    def close(self, reason: str, *, code: int = POLICY_VIOLATION) -> None:
        """Say good-bye; whatever the peer does, the connection ends soon."""
        if self._ws.state is State.OPEN:
            self._is_closed_here = True
            self._ws.send_close(code, _fit(reason))
            self._write()

    # --- inside

    def _answer_request(self, request: Request) -> None:
        admitted = self._admit(request)
        response = self._ws.accept(request) if isinstance(admitted, Identity) else admitted
        self._ws.send_response(response)
        if self._ws.state is State.OPEN and isinstance(admitted, Identity):
            self.links.accepted += 1
            self.identity = admitted
            self._session = self.links.connect(self.send, self.close, admitted)
            return
        self.links.refused += 1
        log.warning("link_refused", status=response.status_code, reason=response.body.decode()[:200].strip())

    def _admit(self, request: Request) -> Identity | Response:
        """Who asks for a link, or why there is none, beyond what the WebSocket protocol itself asks for."""
        if self.links.is_stopping:
            return self._ws.reject(503, "the gate stops; connect again in a moment\n")
        if len(self.links.open) > self.links.options.connections_max:
            return self._ws.reject(503, f"this gate has {self.links.options.connections_max} connections already\n")
        if request.path.partition("?")[0] != LINK_PATH:
            return self._ws.reject(404, f"the link is at {LINK_PATH}\n")
        headers = request.headers
        admitted = self.links.doorkeeper.admit(headers.get_all("Host"), (), headers.get_all("Authorization"))
        return admitted if isinstance(admitted, Identity) else self._turned_away(admitted)

    def _turned_away(self, error: Problem) -> Response:
        response = self._ws.reject(CODES[error.code].http_status, error.detail + "\n")
        if error.code == "unauthorized":
            response.headers["WWW-Authenticate"] = "Bearer"
        return response

    def _cut_frames(self, stream: bytes) -> None:
        """Put every complete frame into the backlog."""
        start = 0
        while (frame := framing.place(stream, start, self.links.options.frame_bytes_max)) is not None:
            start = frame.end
            message = None if self._is_in_parts else framing.message(stream, frame)
            if message is None:
                self._receive(stream[frame.start : frame.end])
            else:
                self._keep(message)
        self._unread += stream[start:]

    def _receive(self, data: bytes) -> None:
        """Let the WebSocket protocol look at what it alone understands."""
        self._ws.receive_data(data)
        for event in self._ws.events_received():
            if isinstance(event, Request):
                self._answer_request(event)
            elif isinstance(event, Frame):
                if event.opcode in MESSAGE_PARTS:
                    self._is_in_parts = not event.fin
                self._keep(event)
        self._write()

    def _keep(self, frame: bytes | Frame) -> None:
        self._backlog.append(frame)
        self._backlog_bytes += _size(frame)

    def _keep_pace(self) -> None:
        """Read no further than can be handled soon; what is not read holds the peer back."""
        is_behind = len(self._backlog) > BACKLOG_MAX or self._backlog_bytes > BACKLOG_BYTES_MAX
        if is_behind and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        elif self._is_paused and not self._backlog and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    def _handle(self, frame: bytes | Frame, session: Session) -> None:
        if isinstance(frame, bytes):
            session.on_frame(frame)
        elif frame.opcode in (Opcode.TEXT, Opcode.CONT):
            if frame.data:
                self._parts.append(bytes(frame.data))
            if frame.fin:
                message, self._parts = b"".join(self._parts), []
                session.on_frame(message)
        elif frame.opcode is Opcode.BINARY:
            self.close("messages of the link are text", code=UNSUPPORTED_DATA)

    def _write(self) -> None:
        """Write what the WebSocket protocol has to say; it decides by itself when a connection is over."""
        data = b"".join(self._ws.data_to_send())
        if data and not self._transport.is_closing():
            self._put(data)
        if self._ws.state is not State.OPEN:
            self._end()

    def _put(self, data: bytes) -> None:
        self._transport.write(data)
        waiting = self._transport.get_write_buffer_size()
        if waiting > self.links.options.queue_bytes_max:
            self._cut("the peer does not read", waiting_bytes=waiting)

    def _end(self) -> None:
        """Close once the peer has said good-bye too, or cannot be expected to; do not wait for it for ever."""
        if not self._is_ending:
            self._is_ending = True
            self._set_timer(CLOSE_S, self._transport.abort)
            if self._ws.parser_exc is not None:
                log.warning("link_broken", reason=str(self._ws.parser_exc)[:200])
        was_open = self._session is not None
        if self._ws.close_rcvd is not None or self._ws.parser_exc is not None or not was_open:
            self._transport.close()

    def _cut(self, why: str, **more: object) -> None:
        self.links.cut += 1
        log.warning("link_cut", reason=why, **more)
        self._transport.abort()
        self._leave()

    def _check_idle(self) -> None:
        idle_s = self.links.options.idle_s
        remaining_s = self._heard_at + idle_s - self._loop.time()
        if remaining_s <= 0:
            self._cut("the peer is silent", idle_s=idle_s)
        else:
            self._set_timer(remaining_s, self._check_idle)

    def _leave(self) -> None:
        """Nothing more is heard and nothing more is said, also in the turn that goes on."""
        self._backlog.clear()
        self._backlog_bytes = 0
        session, self._session = self._session, None
        if session is not None:
            session.closed()

    def _set_timer(self, delay_s: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, call)


def _size(frame: bytes | Frame) -> int:
    """What a frame counts for: an empty one is work as well."""
    return FRAME_BYTES + len(frame if isinstance(frame, bytes) else frame.data)


def _fit(reason: str) -> str:
    return reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
