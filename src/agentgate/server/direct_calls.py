"""The way of `POST /v1/calls` past ASGI: most requests are calls, and most of a request's cost is the way.

uvicorn's protocol reads a request as always. One that is a call gets a cycle of its own instead of an ASGI one: its
body is kept within bounds, handed to `HttpCalls` in the callback that read its end, and the reply is written in the
callback that the outcome comes in. No scope, no receive and send, no task beside the call's own; what that saves is in
docs/explanation/performance.md. Pipelined requests wait their turn in uvicorn's own queue, and everything that is no
such call, or is spelled in another way, takes the way through the framework.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, Final

import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from agentgate.model import Identity, Problem, problem
from agentgate.server import replies
from agentgate.server.access import SAFE_FIELDS
from agentgate.server.calls import HttpCalls, Pending
from agentgate.server.patient_http import PatientHttp
from agentgate.server.replies import CALLS_PATH, Fields, Reply

PATH: Final = CALLS_PATH.encode()
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSING: Final = b"connection: close\r\n"

log = structlog.get_logger("agentgate.server")


class CallCycle:
    """One request that is a call, and its answer; the attributes without an underscore are what uvicorn looks at."""

    __slots__ = (
        "_expects",
        "_headers",
        "_parts",
        "_pending",
        "_protocol",
        "_size",
        "disconnected",
        "identity",
        "is_complete",
        "is_started",
        "keep_alive",
        "response_complete",
        "response_started",
    )

    message_event: ClassVar[asyncio.Event] = asyncio.Event()  # uvicorn sets it when the client leaves; nobody waits

    def __init__(self, protocol: DirectCalls, headers: Fields, *, keep_alive: bool, expects: bool) -> None:
        self._protocol = protocol
        self._headers = headers
        self._parts: list[bytes] = []
        self._size = 0
        self._expects = expects  # to be told that its body is welcome
        self._pending: Pending | None = None
        self.identity: Identity | None = None
        self.is_started = False  # the answer to the request before it has been written
        self.is_complete = False  # its body is there
        self.disconnected = False
        self.keep_alive = keep_alive
        self.response_started = False
        self.response_complete = False

    def start(self) -> None:
        """It is its turn: look who it is before a body is taken."""
        self.is_started = True
        admitted = self._protocol.admit(self._headers)
        if isinstance(admitted, Problem):
            self._refuse(admitted)
            return
        self.identity = admitted
        for name, value in self._headers:
            if name == b"content-length" and not self._fits(int(value)):
                return
        if self._expects and not self.is_complete:
            self._protocol.transport.write(CONTINUE)
        self._begin()

    def feed(self, part: bytes) -> None:
        """A part of its body."""
        self._size += len(part)
        if self._fits(self._size):
            self._parts.append(part)

    def complete(self) -> None:
        """Its body is there."""
        self.is_complete = True
        self._begin()

    def left(self) -> None:
        """Nobody waits for the answer any more."""
        self.response_complete = True
        if self._pending is not None:
            self._pending.left()

    def _begin(self) -> None:
        if not self.is_complete or self.identity is None or self.response_complete:
            return
        parts = self._parts
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        try:
            self._pending = self._protocol.calls.take(self._headers, body, self.identity, self._answer)
        except Exception:
            log.exception("call_not_taken")
            self._answer(replies.refusal(problem("internal", detail="the gate's log says what happened")))

    def _fits(self, size: int) -> bool:
        """Whether a body may be so large; if not, that is the answer."""
        if size <= self._protocol.bytes_max:
            return True
        self._parts.clear()
        detail = f"the body has {size} bytes or more; at most {self._protocol.bytes_max} are allowed"
        self._refuse(problem("too_large", detail=detail))
        return False

    def _refuse(self, error: Problem) -> None:
        """Answer without the rest of the request, which is not worth reading."""
        self.keep_alive = False
        self._answer(replies.refusal(error))

    def _answer(self, reply: Reply) -> None:
        self._pending = None
        if not self.response_complete:
            self._protocol.send_reply(self, reply)


class DirectCalls(PatientHttp):
    """uvicorn's protocol, with a shorter way for calls. The class attributes are set by `bound`."""

    calls: ClassVar[HttpCalls]
    admit: Callable[[Fields], Identity | Problem]
    bytes_max: ClassVar[int]
    unread_max: ClassVar[int]  # bytes of answers that a client may leave unread

    _direct: CallCycle | None = None  # the request that is being read, if it is a call

    @classmethod
    def bound(
        cls, calls: HttpCalls, admit: Callable[[Fields], Identity | Problem], *, bytes_max: int, unread_max: int
    ) -> type[DirectCalls]:
        """The class that uvicorn makes an object of for every connection."""
        own = {"calls": calls, "admit": staticmethod(admit), "bytes_max": bytes_max, "unread_max": unread_max}
        return type("BoundDirectCalls", (cls,), own)

    def on_message_begin(self) -> None:
        """Note what a request needs in any case; its ASGI scope is made when it is known to take that way."""
        self._is_in = "head"
        self._look_at_beginning()
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._direct = None

    def on_headers_complete(self) -> None:
        """Choose the way of this request."""
        parser = self.parser
        if self.url == PATH and parser.get_method() == b"POST" and not self._is_full() and not self._is_link(parser):
            self._is_in = "body"
            self._head_bytes = 0
            self._forget_head()
            self._note_offer()
            is_old = parser.get_http_version() == "1.0"
            self._begin_direct(
                keep_alive=not is_old and parser.should_keep_alive(), expects=self.expect_100_continue and not is_old
            )
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.expect_100_continue = url, expects
        self.headers += headers  # the list that the scope has
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._direct is None:
            super().on_body(body)
        elif not self._direct.response_complete:
            self._direct.feed(body)

    def on_message_complete(self) -> None:
        """The whole request is there."""
        if self._direct is None:
            super().on_message_complete()
            return
        if self._owed:
            return
        self._is_in = ""
        self._forget_body()
        if not self._direct.response_complete:
            self._direct.complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Callers of unfinished calls are gone."""
        for cycle in (self._running, self._direct):
            if isinstance(cycle, CallCycle):
                cycle.left()
        super().connection_lost(exc)

    def send_reply(self, cycle: CallCycle, reply: Reply) -> None:
        """Write an answer; the connection goes on, or ends with it."""
        cycle.response_complete = True
        self._running = None
        if self.transport.is_closing():
            return
        head = [STATUS_LINE[reply.status]]
        head += [b"%b: %b\r\n" % field for field in self.server_state.default_headers]
        head += [b"%b: %b\r\n" % field for field in reply.headers]
        head.append(SAFE_FIELDS if cycle.keep_alive else SAFE_FIELDS + CLOSING)
        head.append(b"\r\n")
        head.append(reply.body)
        self.transport.write(b"".join(head))
        if self.transport.get_write_buffer_size() > self.unread_max:
            log.warning("http_connection_cut", reason="the client does not read its answers")
            self.transport.abort()
        elif not cycle.keep_alive:
            self.transport.close()
        else:
            self.on_response_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """What uvicorn calls when a pipelined request has its turn."""
        if isinstance(cycle, CallCycle):
            self._has_its_turn(cycle)
            cycle.start()
        else:
            super()._start_asgi_task(cycle, app)

    def _begin_direct(self, *, keep_alive: bool, expects: bool) -> None:
        before: Any = self.cycle
        cycle: Any = CallCycle(self, self.headers, keep_alive=keep_alive, expects=expects)
        self.cycle = self._direct = cycle
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _is_link(self, parser: Any) -> bool:
        return bool(parser.should_upgrade()) and self._should_upgrade()

    def _is_full(self) -> bool:
        limit = self.limit_concurrency
        return limit is not None and len(self.connections) >= limit
