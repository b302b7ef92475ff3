"""What the gate says about retrying is understood by clients that have never heard of it (PEERS-GATEWAYS 6.5)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import requests
from aiohttp import ClientResponse
from aiohttp_retry import ExponentialRetry, RetryClient
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from agentgate import Agent, Context
from agentgate.model import problem
from agentgate.server import replies
from agentgate.server.replies import Reply
from tests.integration.real_gate import RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime

BREAKER_OPEN = replies.refusal(problem("breaker_open", retry_after_s=0.01))
OVERLOADED = replies.refusal(problem("overloaded", retry_after_s=0.01))
RUNNING = replies.refusal(problem("in_progress", retry_after_s=0.01))
BARE = Reply(503, [(b"content-length", b"0"), (b"retry-after", b"0")], b"")
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


class Endpoint:
    """Answers everything alike, and counts."""

    def __init__(self, reply: Reply) -> None:
        lines = [name + b": " + value for name, value in reply.headers]
        self.bytes = b"\r\n".join([b"HTTP/1.1 %d X" % reply.status, *lines, b"", reply.body])
        self.asked = 0
        self.url = ""
        self.open: set[asyncio.StreamWriter] = set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                await reader.readexactly(int(lengths[0].split(b":")[1]) if lengths else 0)
                self.asked += 1
                writer.write(self.bytes)
        writer.close()
        self.open.discard(writer)


@contextlib.asynccontextmanager
async def endpoint(reply: Reply) -> AsyncIterator[Endpoint]:
    found = Endpoint(reply)
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()
        for writer in found.open:
            writer.close()
        for _ in range(100):
            await asyncio.sleep(0.01 * bool(found.open))


@pytest.mark.parametrize(("reply", "asked"), [(BREAKER_OPEN, 1), (RUNNING, 1), (OVERLOADED, 3), (BARE, 3)])
@realtime
async def test_openai_python_obeys(reply: Reply, asked: int) -> None:
    """B3: an open breaker and a running key are asked once; "overloaded" is, rightly, asked again; so is a bare 503."""
    async with endpoint(reply) as answering:
        async with openai.AsyncOpenAI(base_url=answering.url, api_key="none", max_retries=2) as client:
            with pytest.raises(openai.APIStatusError) as raised:
                await client.chat.completions.create(**BODY)  # type: ignore[call-overload] # from a plain dict
        assert raised.value.status_code == reply.status
        assert answering.asked == asked


@realtime
async def test_openai_python_against_the_gate_itself() -> None:
    """B3: a breaker that really opens is met once by a client with retries, and the agent not at all."""
    agent = Agent("bank")
    ran: list[str] = []

    @agent.handles("pay")
    async def pay(order: Any, ctx: Context) -> None:
        ran.append(ctx.key)
        raise RuntimeError("no")

    async def call(gate: RunningGate, key: str) -> int:
        async with openai.AsyncOpenAI(base_url=f"{gate.url}/v1", api_key="none", max_retries=2) as client:
            with pytest.raises(openai.APIStatusError) as raised:
                await client.post(
                    "/calls", cast_to=object, body={"target": "bank", "task_type": "pay", "business_key": key}
                )
            return raised.value.status_code

    async with running_gate() as gate, running_agent(gate, agent):
        assert [await call(gate, f"o{number}") for number in range(5)] == [500] * 5
        calls = gate.platform.gateway.counters.calls
        assert calls == len(ran) == 5
        assert await call(gate, "o9") == 503
        assert (gate.platform.gateway.counters.calls, len(ran)) == (calls + 1, 5)


@pytest.mark.parametrize(("reply", "asked"), [(BREAKER_OPEN, 1), (RUNNING, 1), (OVERLOADED, 3)])
@realtime
async def test_aiohttp_retry_obeys_when_it_is_told_how(reply: Reply, asked: int) -> None:
    """B3: with its callback it goes by the header; by default it goes by the status alone (below)."""

    async def is_final(response: ClientResponse) -> bool:
        return response.headers.get("x-should-retry") != "true"

    options = ExponentialRetry(
        attempts=3, start_timeout=0.01, retry_all_server_errors=False, evaluate_response_callback=is_final
    )
    async with endpoint(reply) as answering, RetryClient(retry_options=options) as client:
        async with client.post(answering.url, json=BODY) as response:
            assert response.status == reply.status
        assert answering.asked == asked


@realtime
async def test_aiohttp_retry_by_default_does_not_look() -> None:
    """What the docs warn of: every 5xx is asked again, whatever its headers say."""
    options = ExponentialRetry(attempts=3, start_timeout=0.01)
    async with endpoint(BREAKER_OPEN) as answering, RetryClient(retry_options=options) as client:
        async with client.post(answering.url, json=BODY) as response:
            assert response.status == 503
        assert answering.asked == 3


@pytest.mark.parametrize(
    ("method", "retry", "asked"),
    [
        ("POST", Retry(3, status_forcelist=[503], backoff_factor=0), 1),
        ("POST", Retry(3, status_forcelist=[503], backoff_factor=0, allowed_methods=None, raise_on_status=False), 4),
        ("GET", Retry(3, backoff_factor=0, raise_on_status=False), 4),
        ("GET", Retry(3, backoff_factor=0, status=0, raise_on_status=False), 1),
    ],
)
@realtime
async def test_urllib3_does_not_look(method: str, retry: Retry, asked: int) -> None:
    """What the docs warn of: `Retry` knows no header but Retry-After. It leaves a POST alone unless it is told that
    every method may be repeated, and repeats a GET that carries Retry-After without any list.
    """

    def ask(url: str) -> int:
        with requests.Session() as session:
            session.trust_env = False
            session.mount("http://", HTTPAdapter(max_retries=retry))
            return session.request(method, url, timeout=10).status_code

    async with endpoint(Reply(BREAKER_OPEN.status, [*BREAKER_OPEN.headers[:1], *BARE.headers], b"")) as answering:
        assert await asyncio.to_thread(ask, answering.url) == 503
        assert answering.asked == asked
