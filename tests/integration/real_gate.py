"""A whole gate with its server on a free port, in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agentgate import Agent
from agentgate.app import Platform
from agentgate.cli.gate import open_gate
from agentgate.config import Settings, StoreOptions
from agentgate.core.tokens import ID_BYTES, SECRET_BYTES, Token, hashed, written
from agentgate.sdk.greeting import Identity
from agentgate.sdk.host import AgentHost
from agentgate.sdk.link import Link
from agentgate.sdk.websocket import gate_url, websocket
from agentgate.server.options import ServerOptions
from agentgate.server.service import ServerService
from agentgate.server.token_file import change


class Answer(NamedTuple):
    """What came back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RunningGate:
    """The platform, its server, and a way to ask over HTTP."""

    def __init__(self, platform: Platform, server: ServerService) -> None:
        self.platform = platform
        self.server = server
        self.url = server.url

    async def get(
        self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: str | None = None
    ) -> Answer:
        return await asyncio.to_thread(_ask, self.server.port, method, path, headers or {}, body)

    async def post(self, path: str, body: object, **headers: str) -> Answer:
        """`_` in the name of a header is `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await asyncio.to_thread(_ask, self.server.port, "POST", path, named, json.dumps(body))

    async def until(self, happened: Callable[[], bool]) -> None:
        for _ in range(1_000):
            if happened():
                return
            await asyncio.sleep(0.01)
        pytest.fail("it did not happen within ten seconds")


def make_token(file: Path, name: str, *scopes: str, tenant: str = "default", expires_at: float | None = None) -> str:
    """A token in this file, as `agentgate token create` makes it."""
    token_id, secret = secrets.token_hex(ID_BYTES), secrets.token_hex(SECRET_BYTES)
    made = Token(
        id=token_id,
        name=name,
        tenant=tenant,
        scopes=scopes,
        sha256=hashed(secret),
        created_at=0.0,
        expires_at=expires_at,
    )
    change(file, lambda tokens: (*tokens, made))
    return written(token_id, secret)


def bearer(token: str) -> dict[str, str]:
    """The header that shows a token."""
    return {"Authorization": f"Bearer {token}"}


def _ask(port: int, method: str, path: str, headers: Mapping[str, str], body: str | None = None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers=dict(headers))
        answer = connection.getresponse()
        given = {name.lower(): value for name, value in answer.getheaders()}
        is_endless = given.get("content-type") == "text/event-stream"
        return Answer(answer.status, given, b"" if is_endless else answer.read())


@contextlib.asynccontextmanager
async def running_gate(store: str = "memory", **server: Any) -> AsyncIterator[RunningGate]:
    settings = Settings(server=ServerOptions(port=0, **server), store=StoreOptions(url=store))
    async with open_gate(settings) as (platform, service):
        yield RunningGate(platform, service)


@contextlib.asynccontextmanager
async def running_agent(gate: RunningGate, agent: Agent, instance: str = "i1") -> AsyncIterator[Link]:
    """The agent, connected over a real socket; leaving drains it."""
    link = Link(
        websocket(gate_url(gate.url)),
        Identity(agent=agent.name, instance=instance, card=agent.card()),
        draw=lambda: 0.5,
    )
    async with AgentHost(agent, link), asyncio.TaskGroup() as group:
        group.create_task(link.run())
        await gate.until(lambda: gate.platform.directory.resolve("default", agent.name) is not None)
        yield link
        link.drain("the test is over")
