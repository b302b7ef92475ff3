"""Calls over a real socket: bodies of every size and speed, callers that hang up, and the way to the operator."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest

from agentgate import Agent, Context, Gate
from agentgate.core.call_id import call_id
from agentgate.model import KeyId
from agentgate.server.patient_http import PatientHttp
from tests.integration.real_gate import RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime

HEAD = "POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: o1\r\n"
CALL = {"target": "stock", "task_type": "reserve", "payload": "A-7"}


def stock_agent(ran: list[str] | None = None) -> Agent:
    agent = Agent("stock", concurrency=4)
    runs = [] if ran is None else ran

    @agent.handles("reserve")
    async def reserve(sku: str, ctx: Context) -> str:
        runs.append(ctx.key)
        return f"shelf of {sku[:10]}"

    @agent.handles("rest")
    async def rest(seconds: float, ctx: Context) -> str:
        await asyncio.sleep(seconds)
        runs.append(ctx.key)
        return "rested"

    @agent.handles("look", effect="read")
    async def look(seconds: float, ctx: Context) -> str:
        runs.append("looks")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            runs.append("cancelled")
            raise
        return "looked"

    return agent


@contextlib.asynccontextmanager
async def connected(gate: RunningGate) -> Any:
    """A connection by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.server.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def answered(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    """One HTTP answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers, json.loads(body)


@realtime
async def test_a_call_over_http_is_one_over_the_link() -> None:
    """B6, C3: the same caller, key and body over both ways run once, and the chain shows both."""
    ran: list[str] = []
    async with running_gate() as gate, running_agent(gate, stock_agent(ran)):
        first = await gate.post("/v1/calls", {**CALL, "caller": "shop"}, idempotency_key='"o1"')
        assert (first.status, first.json["value"], first.json["key"]) == (200, "shelf of A-7", "shop:reserve:o1:run")
        async with Gate(gate.url, name="shop") as shop:
            assert await shop.call("stock", "reserve", "o1", "A-7") == "shelf of A-7"
        assert ran == ["shop:reserve:o1:run"]
        spans = (await gate.get("/v1/chains/o1")).json["spans"]
        assert [span.get("replayed", False) for span in spans if span["kind"] == "call"] == [False, True]


@realtime
async def test_a_body_in_pieces_is_a_body() -> None:
    """B6: a chunked body, one in many segments, and one after "continue" are taken like any other."""
    text = json.dumps({**CALL, "payload": "x" * 100_000}).encode()
    async with running_gate() as gate, running_agent(gate, stock_agent()), connected(gate) as (reader, writer):
        writer.write(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        for start in range(0, len(text), 30_000):
            part = text[start : start + 30_000]
            writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.write(b"0\r\n\r\n")
        assert (await answered(reader))[2]["value"] == "shelf of xxxxxxxxxx"
        writer.write(f"{HEAD}Expect: 100-continue\r\nContent-Length: {len(text)}\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(text)
        assert (await answered(reader))[2]["replayed"] is True


@pytest.mark.parametrize("length", ["Content-Length: 70000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"])
@realtime
async def test_a_body_beyond_the_bound_is_not_read(length: str) -> None:
    """B14: it is refused by its length, or as soon as more has come than is allowed, and the connection ends."""
    async with running_gate(frame_bytes_max=65_536) as gate, connected(gate) as (reader, writer):
        writer.write((HEAD + length).encode())
        if "chunked" in length:
            for _ in range(8):
                writer.write(b"2710\r\n" + b" " * 10_000 + b"\r\n")
        status, headers, body = await answered(reader)
        assert (status, body["code"], headers["connection"]) == (413, "too_large", "close")
        assert "at most 65536 are allowed" in body["detail"]
        assert await reader.read() == b""


@realtime
async def test_a_slow_body_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """B14: a body in drops holds no connection for ever; a link, and a call that is at work, are no slow bodies."""
    monkeypatch.setattr(PatientHttp, "body_s", 0.3)
    async with running_gate() as gate, running_agent(gate, stock_agent()):
        async with connected(gate) as (reader, writer):
            writer.write(f'{HEAD}Content-Length: 100\r\n\r\n{{"target'.encode())
            status, headers, body = await answered(reader)
            assert (status, body["code"], headers["connection"]) == (408, "bad_request", "close")
            assert await reader.read() == b""
        async with connected(gate) as (reader, writer):
            text = json.dumps({**CALL, "task_type": "rest", "payload": 1.0})
            request = f"{HEAD}Content-Length: {len(text)}\r\n\r\n{text}"
            writer.write((request + f'{HEAD}Content-Length: 1000\r\n\r\n{{"target').encode())
            assert (await answered(reader))[2]["value"] == "rested"
            assert (await answered(reader))[0] == 408
        assert gate.server.links.cut == 0
        assert len(gate.server.links.open) == 1


@realtime
async def test_hanging_up_cancels_a_read_and_leaves_keyed_work_alone() -> None:
    """Decision 3: as soon as the connection is gone the read's handler is interrupted; the write ends, and is kept."""
    ran: list[str] = []
    async with running_gate() as gate, running_agent(gate, stock_agent(ran)):
        bodies = [
            {"target": "stock", "task_type": "look", "effect": "read", "payload": 30.0},
            {"target": "stock", "task_type": "rest", "business_key": "o2", "payload": 0.5},
        ]
        for body, begun in zip(
            bodies, (lambda: ran == ["looks"], lambda: len(gate.platform.gateway.units) > 0), strict=True
        ):
            async with connected(gate) as (_, writer):
                text = json.dumps(body)
                writer.write(
                    f"{HEAD.replace('Idempotency-Key: o1', 'x: y')}Content-Length: {len(text)}\r\n\r\n{text}".encode()
                )
                await gate.until(begun)
        await gate.until(lambda: len(ran) == 3)
        assert sorted(ran) == ["cancelled", "client:rest:o2:run", "looks"]
        answer = await gate.post("/v1/calls", bodies[1])
        assert (answer.json["value"], answer.json["replayed"]) == ("rested", True)


@realtime
async def test_the_end_of_the_gate_leaves_no_caller_without_a_word() -> None:
    """A6: a keyed call that does not end in time is answered that it goes on, a read that it has to come again."""
    bodies = [
        {"target": "stock", "task_type": "rest", "business_key": "o1", "payload": 20.0},
        {"target": "stock", "task_type": "look", "effect": "read", "payload": 20.0},
    ]
    async with asyncio.TaskGroup() as group:
        async with running_gate(drain_s=0.2) as gate:
            agent = group.create_task(hold(gate))
            await gate.until(lambda: gate.platform.directory.resolve("default", "stock") is not None)
            calls = [group.create_task(gate.post("/v1/calls", body)) for body in bodies]
            await gate.until(lambda: len(gate.platform.gateway.units) == 2)
            name = call_id(KeyId("default", "stock", "client", "rest", "o1", "run"))
            calls.append(group.create_task(gate.get(f"/v1/calls/{name}", headers={"Prefer": "wait=30"})))
            await gate.get("/healthz")  # it is at work by now
        agent.cancel()
    keyed, read, asked = (call.result() for call in calls)
    assert (asked.status, asked.json["status"]) == (202, "running")
    assert (keyed.status, keyed.json["status"]) == (202, "running")
    assert (read.status, read.json["code"]) == (503, "overloaded")


async def hold(gate: RunningGate) -> None:
    async with running_agent(gate, stock_agent()):
        await asyncio.sleep(60)


@realtime
async def test_calls_are_listed_and_settled() -> None:
    """C4, I2: the ledger's records come in pages with the id that GET and settle take; a wrong place is refused."""
    async with running_gate() as gate, running_agent(gate, stock_agent()):
        for number in range(3):
            await gate.post("/v1/calls", {**CALL, "business_key": f"o{number}"})
        first = (await gate.get("/v1/calls?limit=2")).json
        assert [call["business_key"] for call in first["calls"]] == ["o0", "o1"]
        rest = (await gate.get(f"/v1/calls?limit=2&after={first['next']}")).json
        assert ([call["business_key"] for call in rest["calls"]], rest["next"]) == (["o2"], None)
        done = rest["calls"][0]
        assert (done["state"], done["target"], done["agent"], done["key"]) == (
            "done",
            "stock",
            "stock",
            "client:reserve:o2:run",
        )
        assert (await gate.get(f"/v1/calls/{done['id']}")).json["value"] == "shelf of A-7"
        assert (await gate.get("/v1/calls?state=unknown")).json == {"calls": [], "next": None}
        assert (await gate.get("/v1/calls?state=done&target=nobody")).json["calls"] == []
        for wrong in ("state=perhaps", "limit=0", "limit=1001", "after=nonsense"):
            assert (await gate.get(f"/v1/calls?{wrong}")).json["code"] == "bad_request"
        settled = await gate.post(f"/v1/calls/{done['id']}/settle", {"as": "not_done"})
        assert (settled.status, settled.json["code"], settled.headers["x-should-retry"]) == (
            409,
            "version_conflict",
            "false",
        )
        unknown = await gate.post("/v1/calls/nonsense/settle", {"as": "not_done"})
        assert (unknown.status, unknown.json["code"]) == (404, "not_found")
        assert (await gate.get("/v1/calls/nonsense")).json["code"] == "not_found"


@realtime
async def test_other_methods_go_to_the_api() -> None:
    """RFC 9110: what is no call is answered by the framework behind the door."""
    async with running_gate() as gate:
        assert (await gate.get("/v1/calls", method="DELETE")).status == 405
        assert (await gate.post("/v1/calls/", {})).json["detail"].startswith("the call is not of the right form")
        assert (await gate.post("/v1/calls", {}, host="evil.example")).status == 403


@realtime
async def test_who_waits_for_a_call_is_told_at_once_that_the_gate_stops() -> None:
    """A6: not after the time in which running calls may end."""
    loop = asyncio.get_running_loop()

    async def serve(gate: RunningGate) -> None:
        async with running_agent(gate, stock_agent()):
            await asyncio.sleep(60)

    async def told_at(gate: RunningGate, name: str) -> tuple[int, float]:
        answer = await gate.get(f"/v1/calls/{name}", headers={"prefer": "wait=30"})
        return answer.status, loop.time()

    async with asyncio.TaskGroup() as group:
        async with running_gate(drain_s=3.0) as gate:
            agent = group.create_task(serve(gate))
            await gate.until(lambda: gate.platform.directory.resolve("default", "stock") is not None)
            body = {"target": "stock", "task_type": "rest", "business_key": "o1", "payload": 60}
            accepted = await gate.post("/v1/calls", body, prefer="wait=0")
            looking = group.create_task(told_at(gate, accepted.json["id"]))
            await asyncio.sleep(0.3)
            assert not looking.done()
            began = loop.time()
        status, at = await looking
        assert (status, at - began < 1.0) == (202, True)
        agent.cancel()
