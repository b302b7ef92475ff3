"""The HTTP API over a real socket: what it shows, what it refuses, and how the gate stops."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from agentgate import Agent, CallFailed, Context, Gate
from agentgate.errors import ConfigError
from agentgate.model import Card, Skill
from agentgate.model.link import LINK_PATH, SUBPROTOCOL
from agentgate.server.metric_rows import ROWS
from agentgate.server.options import ServerOptions
from agentgate.server.patient_http import PatientHttp
from agentgate.server.service import ServerService
from tests.integration.real_gate import Answer, RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime

HOSTILE = "<img src=x onerror=alert(1)>"


def stock_agent(name: str = "stock") -> Agent:
    agent = Agent(name, tier="core", concurrency=3)

    @agent.handles("reserve")
    async def reserve(sku: str, ctx: Context) -> str:
        if sku == "never":
            raise ValueError("no such thing")
        return f"shelf of {sku}"

    @agent.handles("wait", effect="read")
    async def wait(seconds: float, ctx: Context) -> str:
        await asyncio.sleep(seconds)
        return "waited"

    return agent


def samples(answer: Answer) -> dict[tuple[str, str], float]:
    """Every sample by name and its only label, if it has one."""
    families = text_string_to_metric_families(answer.body.decode())
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in families
        for sample in family.samples
    }


@realtime
async def test_what_happened_can_be_read() -> None:
    """H1, I1: after two calls, agents, chains, breakers and metrics say what was there and what became of it."""
    async with running_gate() as gate, running_agent(gate, stock_agent()):
        async with Gate(gate.url, name="shop") as shop:
            assert await shop.call("stock", "reserve", "order_1", "A-7") == "shelf of A-7"
            with pytest.raises(CallFailed):
                await shop.call("stock", "reserve", "order_2", "never")
        [agent] = (await gate.get("/v1/agents")).json["agents"]
        assert (agent["agent"], agent["tier"], [skill["task_type"] for skill in agent["skills"]]) == (
            "stock",
            "core",
            ["reserve", "wait"],
        )
        assert [(i["instance"], i["state"], i["concurrency"]) for i in agent["instances"]] == [("i1", "connected", 3)]
        chain = (await gate.get("/v1/chains/order_1")).json
        assert [(span["kind"], span["caller"], span["target"]) for span in chain["spans"]] == [
            ("call", "shop", "stock"),
            ("attempt", "shop", "stock"),
        ]
        [trace] = {span["trace_id"] for span in chain["spans"]}
        assert (await gate.get(f"/v1/chains/{trace}")).json["spans"] == chain["spans"]
        assert (await gate.get("/v1/chains/shop:reserve:order_1:run")).json["spans"] == chain["spans"]
        [breaker] = [b for b in (await gate.get("/v1/breakers")).json["breakers"] if b["task_type"] == "reserve"]
        assert (breaker["agent"], breaker["state"], breaker["ok"], breaker["faults"]) == ("stock", "closed", 1, 1)
        metrics = samples(await gate.get("/metrics"))
        assert metrics["agentgate_calls_total", ""] == 2
        assert metrics["agentgate_outcomes_total", "ok"] == 1
        assert metrics["agentgate_outcomes_total", "handler_error"] == 1
        assert metrics["agentgate_instances", "connected"] == 1
        assert metrics["agentgate_links", ""] == 1


@realtime
async def test_a_chain_is_cut_at_its_limit() -> None:
    """B14: no more spans are answered than asked for, and the answer says that there are more."""
    async with running_gate() as gate, running_agent(gate, stock_agent()):
        async with Gate(gate.url, name="shop") as shop:
            await shop.call("stock", "reserve", "order_1", "A-7")
        answer = (await gate.get("/v1/chains/order_1?limit=1")).json
        assert (len(answer["spans"]), answer["truncated"]) == (1, True)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/chains/nothing", 404, "not_found"),
        ("GET", "/v1/chains/a?limit=0", 400, "bad_request"),
        ("GET", "/v1/chains/a?limit=1001", 400, "bad_request"),
        ("GET", "/v1/chains/a?limit=x", 400, "bad_request"),
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/link", 404, "not_found"),
        ("POST", "/v1/agents", 405, "bad_request"),
        ("DELETE", "/healthz", 405, "bad_request"),
    ],
)
@realtime
async def test_errors_are_problems(method: str, path: str, status: int, code: str) -> None:
    """RFC 9457: every error is problem+json with our code and advice, and no trace of the inside."""
    async with running_gate() as gate:
        answer = await gate.get(path, method=method)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
        problem = answer.json
        assert (problem["status"], problem["code"], problem["type"]) == (status, code, f"urn:agentgate:problem:{code}")
        assert {"title", "detail", "advice", "retry"} <= set(problem)
        assert "Traceback" not in answer.body.decode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:7070"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost", "Origin": "http://localhost"}, 200),
        ({"Host": "localhost:7070"}, 200),
    ],
)
@realtime
async def test_pages_of_other_sites_read_nothing(headers: dict[str, str], status: int) -> None:
    """A foreign page, or one whose name was pointed at this machine, is refused before anything is read."""
    async with running_gate() as gate:
        answer = await gate.get("/v1/agents", headers=headers)
        assert answer.status == status
        if status == 403:
            assert answer.json["code"] == "forbidden"


@realtime
async def test_names_are_data_and_never_markup() -> None:
    """F134: an agent named like a script is JSON text, and no answer may run, frame or be taken for a page."""
    async with running_gate() as gate:
        gate.platform.directory.hello("default", Card(agent=HOSTILE), "i1")
        for path in ("/v1/agents", "/healthz", "/metrics", f"/v1/chains/{'%3Cscript%3E'}"):
            answer = await gate.get(path)
            assert "html" not in answer.headers["content-type"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["agentgate"] == "v1"
            assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert (await gate.get("/v1/agents")).json["agents"][0]["agent"] == HOSTILE


@realtime
async def test_a_stopping_gate_lets_running_calls_end() -> None:
    """A6: while it stops the gate is alive but not ready, takes no new link, and answers what it had begun."""
    async with running_gate() as gate, running_agent(gate, stock_agent()), Gate(gate.url, "shop") as shop:
        call = asyncio.ensure_future(shop.call("stock", "wait", payload=0.4, effect="read"))
        await gate.until(lambda: gate.platform.gateway.counters.attempts == 1)
        assert (await gate.get("/readyz")).status == 200
        gate.server.links.is_stopping = True
        ready = await gate.get("/readyz")
        assert (ready.status, ready.json) == (503, {"status": "stopping"})
        assert (await gate.get("/healthz")).status == 200
        assert await call == "waited"


@realtime
async def test_leaving_the_server_waits_for_running_calls() -> None:
    """A6: the end of the service comes after the answer of a call that was under way."""
    outcome: list[Any] = []

    async def ask(gate: RunningGate) -> None:
        async with Gate(gate.url, name="shop") as shop:
            outcome.append(await shop.call("stock", "wait", payload=0.4, effect="read"))

    async with asyncio.TaskGroup() as group:
        async with running_gate(drain_s=10.0) as gate:
            agent = group.create_task(hold(gate))
            await gate.until(lambda: gate.platform.directory.resolve("default", "stock") is not None)
            group.create_task(ask(gate))
            await gate.until(lambda: gate.platform.gateway.counters.attempts == 1)
        agent.cancel()
    assert outcome == ["waited"]


@realtime
async def test_leaving_the_server_does_not_wait_for_calls_that_are_yet_to_come() -> None:
    """A3, A6: clients that call on and on do not hold up the end; none of their calls is refused for it."""
    refused: list[CallFailed] = []

    async def ask(gate: RunningGate) -> None:
        async with Gate(gate.url, name="shop") as shop:
            while True:
                try:
                    await shop.call("stock", "wait", payload=0.1, effect="read")
                except CallFailed as error:
                    refused.append(error)
                    raise

    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        async with running_gate(drain_s=30.0) as gate:
            helpers = [group.create_task(hold(gate))]
            await gate.until(lambda: gate.platform.directory.resolve("default", "stock") is not None)
            helpers += [group.create_task(ask(gate)) for _ in range(4)]
            await gate.until(lambda: gate.platform.gateway.counters.attempts > 20)
            began = loop.time()
        assert loop.time() - began < 15.0
        for helper in helpers:
            helper.cancel()
    assert refused == []


async def hold(gate: RunningGate) -> None:
    async with running_agent(gate, stock_agent()):
        await asyncio.sleep(60)


@realtime
async def test_what_was_noticed_can_be_read() -> None:
    """I6, H2: two instances that declare themselves differently are a finding, with figures and advice, and counted."""
    other = Agent("stock", tier="optional")
    async with running_gate() as gate, running_agent(gate, stock_agent()):
        assert (await gate.get("/v1/findings")).json == {"findings": []}
        async with running_agent(gate, other, instance="i2"):
            await gate.until(lambda: bool(gate.platform.gateway.findings.of("default")))
            [found] = (await gate.get("/v1/findings")).json["findings"]
            assert (found["kind"], found["subject"], found["count"]) == ("cards_differ", "stock", 1)
            assert found["evidence"] == {"instance": "i2", "what": "tier"}
            assert "same version" in found["advice"]
            assert samples(await gate.get("/metrics"))["agentgate_findings_total", "cards_differ"] == 1


@realtime
async def test_a_taken_port_is_one_sentence() -> None:
    """A second gate on the same port does not start, and says what to do."""
    async with running_gate() as gate:
        platform = gate.platform
        second = ServerService(
            ServerOptions(port=gate.server.port),
            gateway=platform.gateway,
            directory=platform.directory,
            spans=platform.spans,
            clock=platform.clock,
        )
        taken = rf"server.port: {gate.server.port} is taken on 127.0.0.1: another gate may be running there"
        with pytest.raises(ConfigError, match=taken):
            async with second:
                pass


@realtime
async def test_labels_of_metrics_are_bounded() -> None:
    """F110: the names of a hundred agents appear in no label."""
    async with running_gate() as gate:
        for number in range(100):
            gate.platform.directory.hello("default", stock_agent(f"agent_{number}").card(), f"i{number}")
        answer = await gate.get("/metrics")
        assert samples(answer)["agentgate_agents", ""] == 100
        assert b"agent_1" not in answer.body
        assert len(answer.body.splitlines()) < 200


@realtime
async def test_metrics_are_the_rows_of_their_page() -> None:
    """H2: what is scraped is exactly the table from which docs/reference/metrics.md is made, with its words."""
    async with running_gate() as gate:
        lines = (await gate.get("/metrics")).body.decode().splitlines()
    described = [line.removeprefix("# HELP ") for line in lines if line.startswith("# HELP ")]
    assert described == [f"{row.full_name} {row.meaning}" for row in ROWS]


@realtime
async def test_a_restarted_gate_remembers_who_was_there(tmp_path: Path) -> None:
    """A8: after a restart on its store the gate expects the agents of before, and its routes have a newer version."""
    store = f"sqlite:{tmp_path / 'gate.sqlite'}"
    async with running_gate(store) as before:
        before.platform.directory.hello("default", stock_agent().card(), "i1")
        version = (await before.get("/v1/agents")).json["version"]
    async with running_gate(store) as after:
        found = (await after.get("/v1/agents")).json
        assert [(agent["agent"], agent["instances"][0]["state"]) for agent in found["agents"]] == [
            ("stock", "expected")
        ]
        assert found["version"] > version
        assert after.platform.directory.resolve("default", "skill:reserve") is not None


@realtime
async def test_connections_that_do_not_say_what_they_want_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """B14: neither silence nor half a request, also after a whole one, holds a descriptor for ever."""
    monkeypatch.setattr(PatientHttp, "head_s", 0.2)
    async with running_gate() as gate:
        for said in (b"", b"GET /heal", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hea"):
            reader, writer = await asyncio.open_connection("127.0.0.1", gate.server.port)
            writer.write(said)
            with contextlib.suppress(ConnectionError):
                answer = await reader.read()
                assert answer.startswith(b"HTTP/1.1 200") == said.endswith(b"GET /hea")
            writer.close()
        assert (await gate.get("/healthz")).status == 200


@realtime
async def test_many_questions_for_the_routes_cost_one_peer_its_link_and_nobody_else_anything() -> None:
    """B14, F110: a small message must not make the gate say hundreds of megabytes."""
    large = {"type": "object", "description": "x" * 20_000}
    async with running_gate() as gate:
        for number in range(20):
            card = Card(
                agent=f"agent_{number}", skills=tuple(Skill(task_type=f"t{n}", input_schema=large) for n in range(6))
            )
            gate.platform.directory.hello("default", card, f"i{number}")
        url = f"ws://127.0.0.1:{gate.server.port}{LINK_PATH}"
        async with connect(url, subprotocols=[Subprotocol(SUBPROTOCOL)], proxy=None, max_size=None) as link:
            await link.send('{"jsonrpc":"2.0","id":1,"method":"hello","params":{"agent":"shop","instance":"s1"}}')
            await link.recv()
            ask = '{"jsonrpc":"2.0","id":2,"method":"routes","params":{}}'
            await link.send(ask)
            assert len(await link.recv()) > 2_000_000
            await link.send("[" + ",".join([ask] * 1_000) + "]")
            await gate.until(lambda: gate.server.links.cut == 1)
        assert (await gate.get("/healthz")).status == 200
