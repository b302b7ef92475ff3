"""The way of `POST /v1/calls` past the framework: most requests are calls, and most of a request's cost is the way.

An ASGI application in front of the other one. It reads the body within bounds, hands it to `calls`, sends the reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from litestar.types import ASGIApp, Receive, Send

from agentgate.errors import WireError
from agentgate.model import problem
from agentgate.server import replies
from agentgate.server.api.scope import identity_of
from agentgate.server.calls import HttpCalls, Pending
from agentgate.server.replies import CALLS_PATH, CLOSE, Reply

# A call that is answered sooner needs nobody to watch whether its caller is still there.
WATCH_AFTER_S: Final = 0.05


class CallDoor:
    """Answers calls; everything else goes to the application behind it."""

    def __init__(self, calls: HttpCalls, app: ASGIApp, *, bytes_max: int) -> None:
        self._calls = calls
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["method"] != "POST" or scope["path"] != CALLS_PATH:
            await self._app(scope, receive, send)
            return
        reply: Reply | None
        try:
            body = await self._body(scope, receive)
        except WireError as error:
            reply = replies.refusal(problem(error.code, detail=error.detail), more=CLOSE)
        else:
            reply = None if body is None else await self._answer(scope, body, receive)
        if reply is not None:
            await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
            await send({"type": "http.response.body", "body": reply.body, "more_body": False})

    async def _answer(self, scope: Mapping[str, Any], body: bytes, receive: Receive) -> Reply:
        loop = asyncio.get_running_loop()
        said: asyncio.Future[Reply] = loop.create_future()
        pending = self._calls.take(
            scope["headers"], body, identity_of(scope), lambda reply: None if said.done() else said.set_result(reply)
        )
        if pending is None:
            return said.result()
        watch = _Watch(receive, pending)
        try:
            return await said
        except asyncio.CancelledError:
            pending.left()
            raise
        finally:
            watch.end()

    async def _body(self, scope: Mapping[str, Any], receive: Receive) -> bytes | None:
        """The whole body, or None when its sender is gone; raises `WireError` before more than is allowed is held."""
        for name, value in scope["headers"]:
            if name == b"content-length":
                self._check(int(value))
        parts: list[bytes] = []
        size = 0
        while True:
            message: Any = await receive()
            if message["type"] != "http.request":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            self._check(size)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _check(self, size: int) -> None:
        if size > self._bytes_max:
            detail = f"the body has {size} bytes or more; at most {self._bytes_max} are allowed"
            raise WireError(detail, code="too_large")


class _Watch:
    """Notices when a caller leaves. Most calls are answered before it begins to look."""

    def __init__(self, receive: Receive, pending: Pending) -> None:
        self._receive = receive
        self._pending = pending
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(WATCH_AFTER_S, self._begin)

    def end(self) -> None:
        """The call is answered."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._look())  # its owner is this request, which ends it

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._pending.left()
