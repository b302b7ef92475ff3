"""One connection of the link: frames in, frames out, no socket inside (DESIGN 4.5).

The shell hands in whole WebSocket messages and takes whole messages to send. The first message has to be `hello`.
A message that breaks the protocol ends the connection with a reason; it never ends anything else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

import msgspec
import structlog

from agentgate.errors import WireError
from agentgate.gateway import frames, reading
from agentgate.gateway.frames import ErrorResponse, Message, Response
from agentgate.model import failure
from agentgate.model.link import (
    PROBE_ID,
    AckParams,
    BeatParams,
    CancelParams,
    DrainParams,
    Frame,
    HelloParams,
    ProbeAnswer,
    ProgressParams,
    ProtocolProblem,
    RoutesParams,
    UnlockParams,
    UnwaitParams,
    WaitParams,
)

if TYPE_CHECKING:
    from agentgate.gateway.link import LinkService
    from agentgate.gateway.peers import Peer
    from agentgate.gateway.request_ids import RequestKind
    from agentgate.model import Identity

log = structlog.get_logger(__name__)

T = TypeVar("T")

_hello = msgspec.json.Decoder(HelloParams)
_cancel = msgspec.json.Decoder(CancelParams)
_progress = msgspec.json.Decoder(ProgressParams)
_routes = msgspec.json.Decoder(RoutesParams)
_unlock = msgspec.json.Decoder(UnlockParams)
_beat = msgspec.json.Decoder(BeatParams)
_drain = msgspec.json.Decoder(DrainParams)
_probed = msgspec.json.Decoder(ProbeAnswer)
_wait = msgspec.json.Decoder(WaitParams)
_unwait = msgspec.json.Decoder(UnwaitParams)

ID_CHARS_MAX: Final = 128
HELLO_S: Final = 10.0  # whoever connects says who it is, or makes room


class Session:
    """One connection; `peer` is known after its `hello`."""

    def __init__(
        self,
        link: LinkService,
        send: Callable[[bytes], None],
        close: Callable[[str], None],
        identity: Identity,
    ) -> None:
        self._link = link
        self._send = send
        self._close = close
        self.identity = identity
        self.peer: Peer | None = None
        self.greeting = False
        self.greeter: asyncio.Task[None] | None = None  # looks up what a hello reports
        self.over = False
        self._outbox: list[bytes] = []
        self._outbox_bytes = 0
        self._is_ack_due = False
        self._loop = asyncio.get_running_loop()  # asking for it costs a system call
        self._silence = self._loop.call_later(HELLO_S, self._end_unless_greeted)

    @property
    def serves(self) -> bool:
        """Whether an agent is at the other end."""
        return self.peer is not None and self.peer.card is not None

    def on_frame(self, data: bytes | str) -> None:
        """Take one WebSocket message. Never raises."""
        if self.over:
            return
        try:
            for frame in frames.decode(data):
                self._take(frame)
        except WireError as error:
            self._breach(error.detail)
        except Exception:
            log.exception("link_frame_failed", instance=self.peer.instance if self.peer else "")
            self._breach("a message could not be handled")

    def closed(self) -> None:
        """The connection has ended; safe to call twice."""
        if not self.over:
            self.over = True
            self._silence.cancel()
            self._link.disconnected(self)

    def end(self, reason: str) -> None:
        """End the connection from this side."""
        if not self.over:
            self._flush()
            self.closed()
            self._close(reason)

    def post(self, message: Message | Response | ErrorResponse) -> None:
        """Queue a message; what is queued in one turn of the loop leaves together."""
        if self.over:
            return
        if not self._outbox:
            self._loop.call_soon(self._flush)
        data = frames.encode(message)
        self._outbox.append(data)
        self._outbox_bytes += len(data)
        if self._outbox_bytes >= frames.BATCH_BYTES_MAX:  # what is said is bounded where it is sent
            self._flush()

    def acknowledge(self) -> None:
        """Say how far the process may forget; once for all answers that were settled in one turn of the loop."""
        if not self._is_ack_due and not self.over:
            self._is_ack_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._is_ack_due and self.peer is not None:
            self._is_ack_due = False
            self._outbox.append(frames.encode(Message("ack", AckParams(seq=self.peer.acks.acked))))
        outbox, self._outbox, self._outbox_bytes = self._outbox, [], 0
        if self.over:
            return
        for data in frames.join(outbox):
            self._send(data)

    def _end_unless_greeted(self) -> None:
        if not self.greeting:
            self.end(f"no hello came within {HELLO_S:g} s")

    def _breach(self, reason: str) -> None:
        self._link.counters.protocol_errors += 1
        log.warning("link_protocol_error", reason=reason, instance=self.peer.instance if self.peer else "")
        self.post(ErrorResponse(None, ProtocolProblem(code=frames.INVALID_REQUEST, message=reason)))
        self.end(reason[:100])

    def _take(self, frame: Frame) -> None:
        if self.over:  # a message before this one, of the same batch, has ended it
            return
        if self.peer is None:
            self._take_hello(frame)
            return
        self._link.seen(self.peer)
        if frame.method is None:
            self._take_answer(self.peer, frame)
        elif frame.method == "call":  # nearly all there is
            self._take_call(self.peer, frame)
        else:
            self._take_note(self.peer, frame)

    def _take_hello(self, frame: Frame) -> None:
        if frame.method == "hello" and self.greeting:
            return  # the same frame again, while the first is being looked at
        if frame.method != "hello" or frame.id is None:
            msg = "the first message has to be `hello`, as a request"
            raise WireError(msg)
        self.greeting = True
        self._link.hello(self, frame.id, _params(_hello, frame))

    def _take_answer(self, peer: Peer, frame: Frame) -> None:
        if not isinstance(frame.id, str):
            msg = "a response needs the id of its request"
            raise WireError(msg)
        if frame.id == PROBE_ID:
            said = None if frame.error is not None else reading.message(frames.raw(frame.result), _probed, "probe")
            self._link.probed(peer, said)
            return
        self._link.counters.messages += 1
        if frame.error is not None:
            answer = reading.refused(frame.error.message)
        else:
            answer = reading.answer(frames.raw(frame.result), self._link.payload_options)
        self._link.answered(peer, frame.id, answer)

    def _ask(self, peer: Peer, frame: Frame, kind: RequestKind, ask: Callable[[Peer, str, bytes], None]) -> None:
        """Hand a request on, unless its id is that of another."""
        request_id = _request_id(frame)
        other = self._link.request_ids.other_kind(peer, request_id, kind)
        if other is None:
            ask(peer, request_id, frames.raw(frame.params))
        else:
            why = f"this id belongs to a `{other}` of the same process; every request needs its own"
            self.post(Response(request_id, failure("bad_request", detail=why)))

    def _take_call(self, peer: Peer, frame: Frame) -> None:
        self._link.counters.messages += 1
        self._ask(peer, frame, "call", self._link.call)

    def _take_note(self, peer: Peer, frame: Frame) -> None:
        take = self.METHODS.get(frame.method or "")
        if take is not None:
            take(self, peer, frame)
            return
        unknown = ProtocolProblem(code=frames.METHOD_NOT_FOUND, message=f"no method {frame.method!r}")
        self.post(ErrorResponse(frame.id, unknown))

    def _take_hello_again(self, peer: Peer, frame: Frame) -> None:
        """The same frame again, after the welcome."""

    def _take_beat(self, peer: Peer, frame: Frame) -> None:
        self._link.beat(peer, _params(_beat, frame))

    def _take_progress(self, peer: Peer, frame: Frame) -> None:
        self._link.progress(peer, _params(_progress, frame))

    def _take_cancel(self, peer: Peer, frame: Frame) -> None:
        self._link.cancel(peer, _params(_cancel, frame).id)

    def _take_lock(self, peer: Peer, frame: Frame) -> None:
        self._ask(peer, frame, "lock", self._link.locks.request)

    def _take_unlock(self, peer: Peer, frame: Frame) -> None:
        self._link.locks.drop(peer, _params(_unlock, frame).id)

    def _take_drain(self, peer: Peer, frame: Frame) -> None:
        self._link.drain(peer, _params(_drain, frame))

    def _take_routes(self, peer: Peer, frame: Frame) -> None:
        self.post(Response(frame.id, self._link.routes(peer, _params(_routes, frame).version)))

    def _take_wait_for(self, peer: Peer, frame: Frame) -> None:
        self._ask(peer, frame, "wait_for", self._link.signals.wait_for)

    def _take_signal(self, peer: Peer, frame: Frame) -> None:
        self._ask(peer, frame, "signal", self._link.signals.signal)

    def _take_wait(self, peer: Peer, frame: Frame) -> None:
        params = _params(_wait, frame)
        if self._link.request_ids.other_kind(peer, params.id, "wait") is None:
            self._link.awaiting.wait(peer, params)

    def _take_unwait(self, peer: Peer, frame: Frame) -> None:
        self._link.awaiting.unwait(peer, _params(_unwait, frame).id)

    # What a process may ask for. Its hello comes first, and that is where its token is held against what it says it is;
    # whatever it asks for later concerns its own calls, its own units, and its own tenant.
    METHODS: ClassVar[dict[str, Callable[[Session, Peer, Frame], None]]] = {
        "hello": _take_hello_again,
        "call": _take_call,
        "beat": _take_beat,
        "progress": _take_progress,
        "cancel": _take_cancel,
        "lock": _take_lock,
        "unlock": _take_unlock,
        "drain": _take_drain,
        "routes": _take_routes,
        "wait_for": _take_wait_for,
        "signal": _take_signal,
        "wait": _take_wait,
        "unwait": _take_unwait,
    }


def _request_id(frame: Frame) -> str:
    if not isinstance(frame.id, str) or not 0 < len(frame.id) <= ID_CHARS_MAX:
        msg = f"a {frame.method} needs an id of 1 to {ID_CHARS_MAX} characters"
        raise WireError(msg)
    return frame.id


def _params(decoder: msgspec.json.Decoder[T], frame: Frame) -> T:
    return reading.message(frames.raw(frame.params), decoder, frame.method or "")
