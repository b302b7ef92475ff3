"""HTTP connections that have to say in time what they want; uvicorn itself would wait for ever.

A connection holds a descriptor. One that sends no request, or a request head in drops, is closed; one that sends a body
in drops is told so before. A link has a deadline of its own, for its `hello`.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from agentgate.model import problem
from agentgate.server import replies

HEAD_S: Final = 10.0
BODY_S: Final = 10.0  # for the largest body over a line of two megabits
REQUEST_TIMEOUT: Final = 408


class PatientHttp(HttpToolsProtocol):
    """uvicorn's protocol, with a limit on the time that a request may take to come."""

    head_s = HEAD_S
    body_s = BODY_S
    _head_timer: asyncio.TimerHandle | None = None
    _body_timer: asyncio.TimerHandle | None = None
    _is_in: Literal["", "head", "body"] = ""  # the part of a request that has begun and is not complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """The first request has to begin at once."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for any more."""
        self._forget_head()
        self._forget_body()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """What has begun has to be complete soon. Most requests come in one piece and need no timer."""
        super().data_received(data)
        if self._is_in == "head":
            self._expect_head()
        elif self._is_in == "body" and self._body_timer is None:
            self._body_timer = self.loop.call_later(self.body_s, self._end_slow_body)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in = "head"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is there; an upgrade ends here as well."""
        self._is_in = "body"
        self._forget_head()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is there."""
        self._is_in = ""
        self._forget_body()
        super().on_message_complete()

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

    def _end_slow_body(self) -> None:
        if self.pipeline:  # nothing is read while the request before it is at work
            self._body_timer = self.loop.call_later(self.body_s, self._end_slow_body)
            return
        if not self.cycle.response_started:
            detail = f"the body has not come within {self.body_s:g} s"
            said = replies.refusal(problem("bad_request", detail=detail), REQUEST_TIMEOUT, more=replies.CLOSE)
            fields = b"".join(name + b": " + value + b"\r\n" for name, value in said.headers)
            self.transport.write(STATUS_LINE[said.status] + fields + b"\r\n" + said.body)
        self.transport.close()
