"""Clients that mean harm, or read the standards in another way, at `POST /v1/calls`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentgate import Agent, Context
from agentgate.server.patient_http import FIELDS_MAX, HEAD_BYTES_MAX, HEAD_S, PatientHttp
from tests.integration.real_gate import RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def echoing() -> AsyncIterator[tuple[RunningGate, list[str]]]:
    """A gate with an agent that answers what it is asked, after a while; what it has done is in the list."""
    done: list[str] = []
    agent = Agent("echo")

    @agent.handles("write")
    async def write(payload: dict[str, Any], ctx: Context) -> str:
        await asyncio.sleep(payload.get("takes_s", 0))
        done.append(ctx.business_key)
        return ctx.business_key

    async with running_gate() as gate, running_agent(gate, agent):
        yield gate, done


@contextlib.asynccontextmanager
async def connection(gate: RunningGate) -> AsyncIterator[Ends]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.server.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def request(key: str, *fields: str, host: str = "localhost", takes_s: float = 0.0) -> bytes:
    body = json.dumps({"target": "echo", "task_type": "write", "business_key": key, "payload": {"takes_s": takes_s}})
    head = ["POST /v1/calls HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}", *fields]
    return ("\r\n".join(head) + "\r\n\r\n" + body).encode()


async def answer(reader: asyncio.StreamReader) -> tuple[int, Any]:
    """Status and body of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].split("\r\n")[0])
    return int(head.split()[1]), json.loads(await reader.readexactly(length))


@pytest.mark.parametrize(
    "line", [b"a:\r\n", b"name: " + b"x" * 8_000 + b"\r\n", b"endless", b"n" * 500 + b":\r\n"], ids=len
)
@realtime
async def test_a_head_without_end_is_refused(line: bytes) -> None:
    """B14: before anybody knows whose it is, a head has a size, in bytes and in fields."""
    async with running_gate() as gate, connection(gate) as (reader, writer):
        writer.write(b"POST /v1/calls HTTP/1.1\r\nHost: localhost\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(2 * max(HEAD_BYTES_MAX // len(line), FIELDS_MAX)):
                writer.write(line)
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(HEAD_S / 2):  # sooner than whoever is merely slow is cut
                status, said = await answer(reader)
            assert (status, said["code"]) == (431, "too_large")
        assert (await gate.get("/healthz")).status == 200


@pytest.mark.parametrize("path", ["/v1/calls", "/v1/agents"])
@pytest.mark.parametrize("cut", [0, 1, 60_000])
@realtime
async def test_a_head_that_is_complete_has_the_same_bound(path: str, cut: int) -> None:
    """B14: in one piece or with its last one; in a field's value, in its name, or in the target; each by itself."""
    async with running_gate() as gate:
        for size, is_taken in ((HEAD_BYTES_MAX - 200, True), (HEAD_BYTES_MAX, False), (3 * HEAD_BYTES_MAX, False)):
            long = "a" * size
            for target, field in ((path, f"x: {long}"), (path, f"{long}: x"), (f"{path}?{long}", "x: x")):
                head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n{field}\r\n\r\n".encode()
                async with connection(gate) as (reader, writer):
                    writer.write(head[:cut])
                    await asyncio.sleep(0.02 if cut else 0)
                    writer.write(head[cut:] + (head if is_taken else b""))
                    for _ in range(2 if is_taken else 1):
                        status, _ = await answer(reader)
                        assert (status == 431) is not is_taken


@pytest.mark.parametrize("offer", ["h2c", "foo"])
@pytest.mark.parametrize("in_pieces", [False, True])
@realtime
async def test_an_offer_to_upgrade_is_an_ordinary_request(offer: str, in_pieces: bool) -> None:
    """RFC 9110: an upgrade that is not taken is ignored; the body is the request's own, never the next request."""
    async with echoing() as (gate, done), connection(gate) as (reader, writer):
        inner = request("smuggled").decode()
        body = json.dumps({"target": "echo", "task_type": "write", "business_key": "o1", "payload": {"note": inner}})
        head = "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        text = f"{head}Upgrade: {offer}\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(text.encode())
        if in_pieces:
            await asyncio.sleep(0.05)
        writer.write(body[:40].encode())
        if in_pieces:
            await asyncio.sleep(0.05)
        writer.write(body[40:].encode() + request("o2"))
        assert [(await answer(reader))[1]["value"] for _ in range(2)] == ["o1", "o2"]
        assert done == ["o1", "o2"]


@realtime
async def test_what_is_no_http_does_not_overtake_an_answer() -> None:
    """C4: the caller of a write gets its answer, whatever comes behind it; then the connection ends."""
    async with echoing() as (gate, _), connection(gate) as (reader, writer):
        writer.write(request("o1", takes_s=0.3) + b"garbage\r\n\r\n")
        assert (await answer(reader))[1]["value"] == "o1"
        assert await reader.read() == b""
    async with running_gate() as gate, connection(gate) as (reader, writer):
        writer.write(b"garbage\r\n\r\n")
        status, said = await answer(reader)
        assert (status, said["code"]) == (400, "bad_request")


@realtime
async def test_nothing_begins_behind_a_refusal_that_ends_the_connection() -> None:
    """I6: what was sent together with a refused request is not run unanswered."""
    async with echoing() as (gate, done), connection(gate) as (reader, writer):
        writer.write(request("o1", host="evil") + request("o2"))
        assert (await answer(reader))[0] == 403
        assert await reader.read() == b""
        await asyncio.sleep(0.2)
        assert done == []


@realtime
async def test_a_trailer_says_nothing() -> None:
    """I6: what comes behind the body is no header, neither a key nor a name."""
    async with echoing() as (gate, done), connection(gate) as (reader, writer):
        body = json.dumps({"target": "echo", "task_type": "write", "payload": {}})
        head = "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(f"{head}{len(body):x}\r\n{body}\r\n0\r\nIdempotency-Key: sly\r\n\r\n".encode())
        status, said = await answer(reader)
        assert (status, done) == (400, [])
        assert "business key" in said["detail"]


@realtime
async def test_go_on_is_said_to_those_who_may() -> None:
    """RFC 9110: a body is asked for when it is welcome, and not before a refusal."""
    async with echoing() as (gate, _), connection(gate) as (reader, writer):
        whole = request("o1", "Expect: 100-continue")
        head, _, body = whole.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await answer(reader))[0] == 200
    async with running_gate() as gate, connection(gate) as (reader, writer):
        writer.write(request("o1", "Expect: 100-continue", host="evil").partition(b"{")[0])
        assert (await answer(reader))[0] == 403


@realtime
async def test_who_does_not_read_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """B14: an answer that nobody takes holds a connection for a while, not for ever."""
    monkeypatch.setattr(PatientHttp, "unread_s", 0.3)
    async with running_gate() as gate:
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.server.port, limit=1)
        for _ in range(400):
            writer.write(b"GET /schema HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server = gate.server._server.server_state  # noqa: SLF001 - uvicorn's own list
        await gate.until(lambda: len(server.connections) == 1)
        await gate.until(lambda: len(server.connections) == 0)
        writer.close()
        del reader


@realtime
async def test_the_time_for_a_body_begins_with_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """B14: while the request before it is at work nothing is read, and that is not the fault of the next one."""
    monkeypatch.setattr(PatientHttp, "body_s", 0.6)
    async with echoing() as (gate, _), connection(gate) as (reader, writer):
        second = request("o2")
        writer.write(request("o1", takes_s=0.5) + second[:-10])
        assert (await answer(reader))[1]["value"] == "o1"
        await asyncio.sleep(0.3)
        writer.write(second[-10:])
        assert (await answer(reader))[1]["value"] == "o2"
