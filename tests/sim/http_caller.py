"""Callers over HTTP without a socket: headers and a body go into the server's own code, a reply comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from agentgate.app import Platform
from agentgate.model import NEIGHBOUR, Identity
from agentgate.server.calls import HttpCalls
from agentgate.server.replies import Reply

CALL = {"target": "bank", "task_type": "pay"}
READ = {"target": "bank", "task_type": "look", "effect": "read"}


class Answered(NamedTuple):
    """A reply, and when it came."""

    status: int
    headers: Mapping[str, str]
    body: Any
    at: float

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))


class HttpCaller:
    """Somebody who calls over HTTP."""

    def __init__(self, platform: Platform, identity: Identity = NEIGHBOUR) -> None:
        self.calls = HttpCalls(platform.gateway, platform.clock)
        self.identity = identity

    def post(self, body: Mapping[str, Any] | bytes, **headers: str) -> asyncio.Task[Answered]:
        """Make a call; `_` in the name of a header is `-`. Cancelling the task is hanging up."""
        raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return asyncio.get_running_loop().create_task(
            self._answered(self.calls.answer(fields(headers), raw, self.identity))
        )

    def pay(self, key: str, **more: Any) -> asyncio.Task[Answered]:
        """A keyed call to the bank."""
        return self.post({**CALL, "business_key": key, **more})

    def look(self, name: str, **headers: str) -> asyncio.Task[Answered]:
        """Ask for a call by its id."""
        return asyncio.get_running_loop().create_task(
            self._answered(self.calls.look(name, fields(headers), self.identity))
        )

    async def _answered(self, coming: Any) -> Answered:
        reply: Reply = await coming
        headers = {name.decode(): value.decode() for name, value in reply.headers}
        assert int(headers.pop("content-length")) == len(reply.body)
        return Answered(reply.status, headers, msgspec.json.decode(reply.body), asyncio.get_running_loop().time())


def fields(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as a server reads them."""
    return [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
