"""HTTP connections that have to say in time, and in bounds, what they want; uvicorn itself would take anything.

A connection holds a descriptor. One that sends no request, or a request head in drops, is closed; one that sends a body
in drops is told so before; one that does not read its answers is cut. A head has a size, in bytes and in fields, before
anybody knows whose it is. A link has a deadline of its own, for its `hello`.

Two things of HTTP are done here by hand, because uvicorn and its parser leave them out. A request that offers an
upgrade which is none of ours (stock clients offer HTTP/2 so) is an ordinary request: its body is read. And what is no
HTTP is answered after the requests before it, not instead of them.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from agentgate.model import Problem, problem
from agentgate.server import replies

HEAD_S: Final = 10.0
BODY_S: Final = 10.0  # for the largest body over a line of two megabits
UNREAD_S: Final = 30.0  # an answer of some hundred KiB that nobody takes
HEAD_BYTES_MAX: Final = 65_536
FIELDS_MAX: Final = 200
BESIDE_FIELD: Final = 4  # a colon, a blank, and the end of the line
BAD_REQUEST: Final = 400
REQUEST_TIMEOUT: Final = 408
HEAD_TOO_LARGE: Final = 431
CHUNKED_OFFER: Final = "a request that offers an upgrade needs a Content-Length: how long its body is, nobody says"


class Unreadable(Exception):
    """What comes is not worth reading on; raised inside the parser's callbacks to stop it at once."""

    def __init__(self, error: Problem, status: int) -> None:
        super().__init__(error.detail)
        self.error = error
        self.status = status


class PatientHttp(HttpToolsProtocol):
    """uvicorn's protocol, with limits on the time and the size of a request, and on the patience with a reader."""

    head_s = HEAD_S
    body_s = BODY_S
    unread_s = UNREAD_S
    _head_timer: asyncio.TimerHandle | None = None
    _body_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _is_in: Literal["", "head", "body"] = ""  # the part of a request that has begun and is not complete
    _head_bytes = 0  # of a head that has not come in one piece
    _begun = 0  # requests that have begun in this piece
    _field_bytes = 0  # of a head, as far as it has been understood
    _owed = 0  # bytes of a body that the parser leaves to us, because its request offers an upgrade
    _is_broken = False  # what comes is no HTTP any more
    _running: Any = None  # the request that is being answered

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """The first request has to begin at once."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for any more."""
        self._forget_head()
        self._forget_body()
        self._forget_unread()
        if self._running is not None:
            self._running.disconnected = True  # uvicorn tells the last request only
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """What has begun has to be complete soon. Most requests come in one piece and need no timer."""
        self._unset_keepalive_if_required()
        if self._is_broken or self.transport.is_closing():
            return
        to_begin = int(self._is_in == "")
        self._begun = 0
        self._feed(data)
        if self._is_in == "head":
            if self._begun == to_begin:  # else this piece has the end of another request as well
                self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._break(_too_large(), HEAD_TOO_LARGE)
                return
            self._expect_head()
        elif self._is_in == "body" and self._body_timer is None:
            self._body_timer = self.loop.call_later(self.body_s, self._end_slow_body)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in = "head"
        self._look_at_beginning()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head; those of a trailer come too late to say anything."""
        if self._is_in != "head":
            return
        if len(self.headers) >= FIELDS_MAX:
            raise Unreadable(_too_large(), HEAD_TOO_LARGE)
        self._count(len(name) + len(value) + BESIDE_FIELD)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its head is there; an upgrade ends here as well."""
        self._is_in = "body"
        self._head_bytes = 0
        self._forget_head()
        self._note_offer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is there; unless its body is still to be read."""
        if self._owed:
            return
        self._is_in = ""
        self._forget_body()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """A link begins; not behind a request that is still being answered, whose answer would get into it."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self.transport.close()
            return
        super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        """The other side does not read; it has a while to begin."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(self.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads."""
        self._forget_unread()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing more came; what it has not read by now, it will not read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        self._break(problem("bad_request", detail=msg), BAD_REQUEST)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._has_its_turn(cycle)
        super()._start_asgi_task(cycle, app)

    def _has_its_turn(self, cycle: Any) -> None:
        """This request is answered now; the time for its body begins here, for nothing was read before."""
        self._running = cycle
        if self._body_timer is not None:
            self._forget_body()
            self._body_timer = self.loop.call_later(self.body_s, self._end_slow_body)

    def _feed(self, data: bytes) -> None:
        if self._owed:
            data = self._pay(data)
            if not data:
                return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            else:
                self._go_on(data[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            why = error.__context__
            if self.transport.is_closing():
                self._is_broken = True
            elif isinstance(why, Unreadable):
                self._break(why.error, why.status)
            else:
                self.send_400_response("what came is not an HTTP request")

    def _count(self, size: int) -> None:
        self._field_bytes += size
        if self._field_bytes > HEAD_BYTES_MAX:
            raise Unreadable(_too_large(), HEAD_TOO_LARGE)

    def _look_at_beginning(self) -> None:
        """Behind an answer that closes the connection nothing begins."""
        self._begun += 1
        self._field_bytes = 0
        if self.transport.is_closing():
            raise Unreadable(problem("bad_request"), BAD_REQUEST)

    def _note_offer(self) -> None:
        """The parser reads no body after an offer to upgrade; what its length says is read by hand."""
        if not self.parser.should_upgrade() or self._should_upgrade():
            return
        for name, value in self.headers:
            if name == b"content-length":
                self._owed = int(value)
            elif name == b"transfer-encoding":
                raise Unreadable(problem("bad_request", detail=CHUNKED_OFFER), BAD_REQUEST)

    def _go_on(self, rest: bytes) -> None:
        """As if nothing had been offered; the parser has ended with the offer, so there is a new one."""
        self.parser = httptools.HttpRequestParser(self)
        if rest:
            self._feed(rest)

    def _pay(self, data: bytes) -> bytes:
        """Take what belongs to the body; the rest is the next request's."""
        body, rest = data[: self._owed], data[self._owed :]
        self._owed -= len(body)
        self.on_body(body)
        if not self._owed:
            self.on_message_complete()
        return rest

    def _break(self, error: Problem, status: int) -> None:
        """Read nothing more. Who waits for an answer gets it; the last one closes the connection."""
        self._is_broken = True
        self._forget_head()
        self._forget_body()
        waits_for_body = self._is_in == "body"
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete and not (waits_for_body and cycle is self._running):
            cycle.keep_alive = False
            return
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()
            return
        if cycle is not None:
            cycle.disconnected = True
            cycle.message_event.set()
        self._say(error, status)

    def _say(self, error: Problem, status: int) -> None:
        said = replies.refusal(error, status, more=replies.CLOSE)
        fields = b"".join(b"%b: %b\r\n" % field for field in said.headers)
        self.transport.write(STATUS_LINE[said.status] + fields + b"\r\n" + said.body)
        self.transport.close()

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self.transport.abort)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _forget_body(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _forget_unread(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _end_slow_body(self) -> None:
        if self.pipeline:  # nothing is read while the request before it is at work
            self._body_timer = self.loop.call_later(self.body_s, self._end_slow_body)
            return
        detail = f"the body has not come within {self.body_s:g} s"
        self._break(problem("bad_request", detail=detail), REQUEST_TIMEOUT)


def _too_large() -> Problem:
    detail = f"a request head has at most {HEAD_BYTES_MAX} bytes and {FIELDS_MAX} fields"
    return problem("too_large", detail=detail)
