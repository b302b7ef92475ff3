"""One connection to an agent: bytes in, an `HttpAnswer` out, and nothing that a server does goes on for ever.

The protocol's callbacks settle a request directly: there is no task, no future and no timer per request. Limits in
bytes are checked where the bytes come in; limits in time by whoever asks `overdue` every now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

import httptools
import structlog

from agentgate.model import HttpAnswer, HttpEnd, HttpFailure

if TYPE_CHECKING:
    from agentgate.adapters.http.client import Pool

INTERIM_MAX: Final = 8  # 100 and 103 come once or twice; a stream of them is no answer
OVERHEAD_MAX: Final = 8  # bytes on the wire for one of the body: chunks of one byte, and then it is enough
WANTED: Final = frozenset({b"content-encoding", b"retry-after", b"date", b"location"})
FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})  # without either, a body ends with its connection
INTERIM_STATUS_MIN: Final = 100
FINAL_STATUS_MIN: Final = 200

log = structlog.get_logger("agentgate.http")


class TooMuch(Exception):
    """The answer passes a bound; raised inside the parser's callbacks to stop it at once."""


class Exchange:
    """One request on its way (`ports.http.Exchange`)."""

    __slots__ = ("connection", "is_over", "may_repeat", "on_end", "request", "task", "until", "was_sent")

    def __init__(
        self, request: bytes, on_end: Callable[[HttpEnd], None], until: float, *, may_repeat: bool = False
    ) -> None:
        self.request = request
        self.on_end = on_end
        self.until = until
        self.may_repeat = may_repeat
        self.is_over = False
        self.was_sent = False
        self.connection: Connection | None = None
        self.task: asyncio.Task[None] | None = None  # that makes a connection for it

    def abort(self) -> bool:
        """Give it up; whether it may have been sent."""
        if self.is_over:
            return True
        self.is_over = True
        if self.connection is not None:
            self.connection.abort()
            return True
        if self.task is not None:
            self.task.cancel()
        return self.was_sent

    def end(self, end: HttpEnd) -> None:
        """It has come to this; once."""
        if self.is_over:
            return
        self.is_over = True
        self.connection = None
        try:
            self.on_end(end)
        except Exception:
            log.exception("http_answer_failed")


class Connection(asyncio.Protocol):
    """One connection of a pool; it carries one request at a time."""

    def __init__(self, pool: Pool, exchange: Exchange) -> None:
        self._pool = pool
        self._limits = pool.limits
        self._body_max = pool.body_bytes_max
        self._exchange: Exchange | None = exchange
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._is_used = False  # it has carried a request before this one
        self.heard_at = 0.0
        self._expect()

    def _expect(self) -> None:
        """Make ready for an answer."""
        self._began_at = 0.0  # when its first byte came; 0: it has not
        self._bytes = 0
        self._head_bytes = 0
        self._interim = 0
        self._status = 0
        self._is_framed = False
        self._is_complete = False
        self._is_surplus = False
        self._stays_open = False
        self._too_large = False
        self._headers: dict[bytes, bytes] = {}
        self._body: bytes | bytearray = b""

    # --- what the pool calls

    def carry(self, exchange: Exchange) -> bool:
        """Send this request; False when the connection is closing."""
        if self._transport is None or self._transport.is_closing():
            return False
        self._exchange = exchange
        self._is_used = True
        self._expect()
        self._write(exchange)
        return True

    def overdue(self, now: float) -> str | None:
        """Which of its times has passed, in words."""
        exchange = self._exchange
        if exchange is None:
            return "unused" if now >= self.heard_at + self._limits.keep_s else None
        if now >= exchange.until:
            return "no answer came in the time that was left"
        if not self._began_at:
            return None
        if now >= self.heard_at + self._limits.idle_s:
            return f"the answer stopped for {self._limits.idle_s:g} s"
        if now >= self._began_at + self._limits.answer_s:
            return f"the answer took longer than {self._limits.answer_s:g} s"
        return None

    def give_up(self, why: str) -> None:
        """Close it now, and tell whoever waits."""
        exchange = self._exchange
        self.abort()
        if exchange is not None:
            exchange.end(HttpFailure(sent=True, detail=why))

    def abort(self) -> None:
        """Close it now; whoever waits is not told."""
        self._exchange = None
        self._pool.closed(self)
        if self._transport is not None:
            self._transport.abort()

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected, and with TLS proven: send the request."""
        self._transport = cast("asyncio.Transport", transport)
        exchange = self._exchange
        assert exchange is not None, "made for a request"
        self._pool.opened(self, exchange)
        if exchange.is_over:
            self.abort()
        else:
            self._write(exchange)

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer."""
        if self._exchange is None or self._parser is None:
            self.abort()  # nobody asked
            return
        self.heard_at = self._pool.now()
        if not self._began_at:
            self._began_at = self.heard_at
        self._bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            self._stopped(error)
            return
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._is_complete:
                self.give_up(_not_http(error))
                return
            self._is_surplus = True
        if self._is_complete:
            self._finish()
        elif self._is_over_bounds():
            self.give_up("the answer's head, or what surrounds its body, is too large")

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone, for whatever reason."""
        self._pool.closed(self)
        exchange, self._exchange = self._exchange, None
        self._parser = None  # it holds this object
        if exchange is None or self._transport is None:
            return
        if exc is None and self._status and not self._is_framed:
            exchange.end(self._answer())  # the end of the connection is the end of the body
        elif exchange.may_repeat and self._is_used and not self._began_at:
            exchange.connection = None
            self._pool.connect(exchange)
        else:
            exchange.end(HttpFailure(sent=True, detail=_lost(exc, begun=bool(self._began_at))))

    # --- what the parser calls

    def on_message_begin(self) -> None:
        """An answer begins; a second one was not asked for."""
        if self._is_complete:
            self._is_surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """One line of a head, or of the trailers."""
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._limits.head_bytes_max:
            raise TooMuch(f"the answer's head is larger than {self._limits.head_bytes_max} bytes")
        name = name.lower()
        if self._status:  # a trailer
            return
        if name in FRAMING:
            self._is_framed = True
            if name == b"transfer-encoding" and b"chunked" not in value.lower():
                raise TooMuch(f"the answer is transferred as {_text(value)!r}; only `chunked` says where it ends")
        elif name in WANTED:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        """A head is there; that of an interim answer says nothing."""
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < INTERIM_STATUS_MIN:
            raise TooMuch(f"what came back is not HTTP: status {status}")
        if status < FINAL_STATUS_MIN:
            self._interim += 1
            self._is_framed = False
            self._headers.clear()
            if self._interim > INTERIM_MAX:
                raise TooMuch("the server sends interim answers without end")
        elif not self._is_complete:
            self._status = status

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        if self._is_complete:
            raise TooMuch("the server sends more than one answer")
        if len(self._body) + len(body) > self._body_max:
            self._too_large = True
            raise TooMuch("the answer is too large")
        if not self._body:
            self._body = body  # nearly always all of it
            return
        if isinstance(self._body, bytes):
            self._body = bytearray(self._body)
        self._body += body

    def on_message_complete(self) -> None:
        """All of an answer is there."""
        if not self._status:  # an interim answer: the server has read the request, and has nothing to say yet
            self._began_at = 0.0
        elif not self._is_complete:
            assert self._parser is not None
            self._is_complete = True
            self._stays_open = self._parser.should_keep_alive()  # asked later, it would speak of the next answer

    # --- inside

    def _write(self, exchange: Exchange) -> None:
        assert self._transport is not None
        exchange.connection = self
        exchange.was_sent = True
        self._transport.write(exchange.request)

    def _is_over_bounds(self) -> bool:
        """Whether there is too much on the wire around what counts: an endless head line, chunks of nothing."""
        if not self._status:
            return self._bytes > self._limits.head_bytes_max
        return self._bytes > OVERHEAD_MAX * self._body_max + self._limits.head_bytes_max

    def _stopped(self, error: Exception) -> None:
        """A callback has stopped the parser: a bound was passed."""
        if self._is_complete or self._too_large:
            self._is_surplus = True
            self._finish()
        else:
            self.give_up(str(error.__context__ or error))

    def _finish(self) -> None:
        """The answer is there: give the connection back, or close it, and say so."""
        exchange, self._exchange = self._exchange, None
        assert exchange is not None
        answer = self._answer()
        if self._is_surplus or not self._stays_open:
            self.abort()
        else:
            self._pool.keep(self)
        exchange.end(answer)

    def _answer(self) -> HttpAnswer:
        headers = self._headers
        return HttpAnswer(
            status=self._status,
            body=b"" if self._too_large else bytes(self._body),
            content_encoding=_text(headers.get(b"content-encoding")),
            retry_after=_text(headers.get(b"retry-after")),
            date=_text(headers.get(b"date")),
            location=_text(headers.get(b"location")),
            too_large=self._too_large,
        )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")


def _not_http(error: Exception) -> str:
    if isinstance(error, httptools.HttpParserUpgrade):
        return "the answer changes to another protocol, which nobody has asked for"
    return f"what came back is not HTTP: {str(error) or type(error).__name__}"


def _lost(error: Exception | None, *, begun: bool) -> str:
    how = "was reset" if error is not None else "was closed"
    return f"the connection {how} {'in the middle of' if begun else 'before'} the answer"
