"""Registration by HTTP: who may, where, for how long, and what a probe, a silence and a restart of the gate mean."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from litestar import Request

from agentgate import CallFailed, Gate
from agentgate.model import Card, Identity, Problem, Skill, qualified
from agentgate.model.link import HelloParams
from agentgate.sdk.greeting import Identity as Greeting
from agentgate.sdk.link import Link
from agentgate.sdk.websocket import gate_url, websocket
from agentgate.server.api import instances
from agentgate.server.api.scope import IDENTITY_KEY
from agentgate.server.problems import Refused
from tests.integration.http_agents import (
    PATH,
    QUICK,
    Names,
    ask,
    called,
    card,
    hang,
    numbered,
    quick_gate,
    register,
    registered,
    state_of,
)
from tests.integration.realtime import realtime
from tests.integration.wild_server import wild_server

# --- registering


@realtime
async def test_registering_again_renews_and_changes_nothing() -> None:
    """A1: the answer says how long it holds and when to renew; renewing writes nothing and moves no version."""
    async with wild_server(numbered(1)) as server, quick_gate() as gate:
        first = await register(gate, server)
        assert (first.status, first.json) == (
            200,
            {"agent": "stock", "instance": "i1", "address": "127.0.0.1", "ttl_s": 60.0, "renew_after_s": 20.0},
        )
        version = gate.platform.directory.snapshot().version
        assert (await register(gate, server)).json == first.json
        assert gate.platform.directory.snapshot().version == version
        await register(gate, server, concurrency=2)
        assert gate.platform.directory.snapshot().version > version
        assert gate.platform.directory.agents()[0].instances[0].concurrency == 2


@realtime
async def test_two_processes_under_one_name_are_noticed() -> None:
    """A8, I6: endpoints that register in turn are several processes; one that starts anew at other ports is not."""
    async with quick_gate() as gate:
        for port in (1, 2, 3, 4, 5):
            await register(gate, f"http://127.0.0.1:{port}", instance="i2")
        for port in (1, 1, 2, 2, 1):
            assert (await ask(gate, "GET", "/v1/findings")).json == {"findings": []}
            await register(gate, f"http://127.0.0.1:{port}")
        await register(gate, "http://127.0.0.1:2")
        [found] = (await ask(gate, "GET", "/v1/findings")).json["findings"]
        assert (found["kind"], found["subject"]) == ("instance_name_shared", "stock/i1")
        assert found["evidence"] == {"takeovers": 3, "endpoints": ["http://127.0.0.1:2", "http://127.0.0.1:1"]}


REFUSED: dict[str, tuple[object, int, str, str]] = {
    "no JSON": (b"{", 400, "bad_request", "not valid JSON"),
    "no object": (b"[]", 400, "bad_request", "Expected `object`"),
    "no endpoint": ({"skills": []}, 400, "bad_request", "missing required field `endpoint`"),
    "a field that is not there": ({"endpoint": "http://127.0.0.1/", "tiers": 1}, 400, "bad_request", "`tiers`"),
    "too large": (b'"' + b"x" * 600_000 + b'"', 413, "too_large", ""),
    "a card too large": (b'"' + b"x" * 262_144 + b'"', 413, "too_large", "262146 bytes"),
    "a tier that is not there": (card("http://127.0.0.1/", tier="best"), 400, "bad_request", "tier"),
    "concurrency 0": (card("http://127.0.0.1/", concurrency=0), 400, "bad_request", "concurrency must be"),
    "concurrency 257": (card("http://127.0.0.1/", concurrency=257), 400, "bad_request", "concurrency is 257"),
    "too many open units": (
        card("http://127.0.0.1/", concurrency=33, skills=[{"task_type": "ask", "rests": True}]),
        400, "bad_request", "so 264 units may be open",
    ),
    "a schema that is none": (
        card("http://127.0.0.1/", skills=[{"task_type": "ask", "input_schema": {"type": "nonsense"}}]),
        400, "bad_request", "the input_schema of 'ask' cannot be used: \"nonsense\" is not valid",
    ),
    "a schema elsewhere": (
        card("http://127.0.0.1/", skills=[{"task_type": "ask", "output_schema": {"$ref": "file:///etc/passwd"}}]),
        400, "bad_request", "the output_schema of 'ask' cannot be used",
    ),
    "another scheme": (card("ftp://127.0.0.1/"), 400, "bad_request", "begins with http"),
    "a user": (card("http://a:b@127.0.0.1/"), 400, "bad_request", "no user and password"),
    "a number": (card("http://2130706433/"), 400, "bad_request", "looks like a number"),
    "port 0": (card("http://127.0.0.1:0/"), 400, "bad_request", "port is 0"),
    "a probe that is no path": (card("http://127.0.0.1/", probe="x"), 400, "bad_request", "the path 'x'"),
    "another network": (card("http://10.0.0.1/"), 403, "forbidden", "agents.endpoint_allow"),
    "metadata": (card("http://169.254.169.254/latest"), 403, "forbidden", "agents.endpoint_allow"),
    "mapped": (card("http://[::ffff:127.0.0.1]/"), 403, "forbidden", "written as IPv6"),
    "a name without address": (card("http://nowhere.invalid/"), 400, "bad_request", "has no address"),
    "a card that is none": (
        {"endpoint": "http://127.0.0.1/", "skills": [{"task_type": ""}]}, 400, "bad_request", "may not be empty"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@realtime
async def test_what_cannot_be_registered_is_refused_in_a_sentence(name: str) -> None:
    """B14, I6: one clear error each, and nothing is remembered of it."""
    body, status, code, why = REFUSED[name]
    async with quick_gate() as gate:
        answer = await ask(gate, "PUT", PATH, body)
        assert (answer.status, answer.json["code"], why in answer.json["detail"]) == (status, code, True), answer.body
        assert (len(gate.platform.gateway.http_agents), gate.platform.directory.agents()) == (0, [])


@realtime
async def test_names_that_no_agent_may_have_are_refused() -> None:
    """I6: the names in the path are checked as those of a link."""
    async with wild_server(numbered(1)) as server, quick_gate() as gate:
        for path in ("/v1/agents/a%3Ab/instances/i1", "/v1/agents/a/instances/%20", "/v1/agents/a/instances/%0A"):
            answer = await ask(gate, "PUT", path, card(server.url))
            assert (answer.status, answer.json["code"]) == (400, "bad_request"), path
        assert len(gate.platform.gateway.http_agents) == 0


@realtime
async def test_an_instance_belongs_to_whoever_has_it() -> None:
    """I6: neither another agent, nor another tenant, nor a process on a link gets the name of an instance."""
    async with wild_server(numbered(1)) as server, quick_gate() as gate:
        await registered(gate, server)
        other = await register(gate, server, agent="thief")
        assert (other.status, other.json["code"]) == (403, "forbidden")
        taken = await gate.platform.gateway.http_agents.register("t2", Card(agent="stock"), "i1", server.url, "")
        assert getattr(taken, "code", "") == "forbidden"
        assert (await ask(gate, "DELETE", "/v1/agents/thief/instances/i1")).status == 404
        assert gate.platform.gateway.http_agents.leave("t2", "stock", "i1") is not None
        assert state_of(gate) == "connected"


@realtime
async def test_no_name_leads_into_another_tenant() -> None:
    """I6: a name with the separator of tenants in it is none, whether or not there is such an instance elsewhere."""
    async with wild_server(numbered(1)) as server, quick_gate() as gate:
        agents = gate.platform.gateway.http_agents
        blue = Card(agent="stock", skills=(Skill(task_type="look", effect="read"),))
        assert not isinstance(await agents.register("blue", blue, qualified("blue", "i1"), server.url, ""), Problem)
        for instance in ("blue%1Fi1", "blue%1Fi2"):
            answers = [await register(gate, server, instance=instance)]
            answers.append(await ask(gate, "DELETE", f"/v1/agents/stock/instances/{instance}"))
            for answer in answers:
                assert (answer.status, answer.json["code"]) == (400, "bad_request")
                assert "U+001F" in answer.json["detail"]
        assert (await register(gate, server)).status == 200
        assert sorted(agent.instance for agent in agents) == ["blue\x1fi1", "i1"]
        assert [info.agent for info in gate.platform.directory.agents("default")] == ["stock"]


@pytest.mark.parametrize("skills", [None, (Skill(task_type="look", effect="read"),)])
@realtime
async def test_a_link_cannot_take_an_http_instance_over(skills: tuple[Skill, ...] | None) -> None:
    """C4, I6: a hello with its name, with a card or without, is refused; what it runs is not called "never seen"."""
    async with wild_server(hang) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        with pytest.raises(CallFailed):
            await shop.call("stock", "sell", "o1", 1, timeout=0.2)
        said: list[dict[str, Any]] = []
        session = gate.platform.gateway.connect(lambda data: said.append(json.loads(data)), lambda _reason: None)
        own = Card(agent="stock", skills=skills) if skills is not None else None
        hello = HelloParams(agent="stock", instance="i1", card=own)
        session.on_frame(json.dumps({"jsonrpc": "2.0", "id": "h", "method": "hello", "params": _plain(hello)}))
        assert said[0]["error"]["data"]["code"] == "forbidden"
        assert (len(gate.platform.gateway.units), state_of(gate)) == (1, "connected")


def _plain(params: HelloParams) -> Any:
    import msgspec  # noqa: PLC0415 - only here

    return msgspec.to_builtins(params)


@realtime
async def test_a_process_on_a_link_keeps_its_name() -> None:
    """I6: an instance that is connected, or was before it lost its link, cannot be registered by HTTP."""
    own = Card(agent="stock", skills=(Skill(task_type="look", effect="read"),))
    async with wild_server(numbered(1)) as server, quick_gate() as gate:
        link = Link(websocket(gate_url(gate.url)), Greeting(agent="stock", instance="i1", card=own), draw=lambda: 0.5)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(link.run())
            await gate.until(lambda: state_of(gate) == "connected")
            answer = await register(gate, server)
            assert (answer.status, answer.json["code"]) == (403, "forbidden")
            assert "on a link" in answer.json["detail"]
            link.close()
            await asyncio.wait({running})
        assert (await register(gate, server)).status in (400, 403)


@realtime
async def test_only_whoever_speaks_for_an_agent_registers_it() -> None:
    """I6: without the agent's scope nothing is looked at, whatever is asked."""
    mine = Identity(name="stock", scopes=frozenset({"agent:stock", "operate"}))
    request: Request[Any, Any, Any] = Request({"type": "http", IDENTITY_KEY: mine})  # type: ignore[arg-type] # no more is looked at
    for handler in (instances.register, instances.unregister):
        with pytest.raises(Refused) as raised:
            await handler.fn(state=None, request=request, agent="shop", instance="i1")
        assert (raised.value.error.code, raised.value.error.detail) == ("forbidden", "that takes the scope agent:shop")


@realtime
async def test_registrations_are_bounded() -> None:
    """B14: at the bound a new instance is refused, with a time; one that is there renews."""
    settings = replace(QUICK, calls=replace(QUICK.calls, peers_max=2))
    async with wild_server(numbered(1)) as server, quick_gate(settings) as gate:
        await registered(gate, server, server)
        answer = await register(gate, server, instance="i3")
        assert (answer.status, answer.json["code"], answer.json["retry_after_ms"]) == (503, "overloaded", 1000)
        assert (await register(gate, server, instance="i2")).status == 200


# --- addresses


@realtime
async def test_a_name_is_pinned_until_it_is_renewed() -> None:
    """I6: what a name means later moves no call (DNS rebinding); renewing looks again, and may refuse."""
    names = Names(QUICK.http, 262_144)
    names.addresses = {"agents.test": ["127.0.0.1"]}

    async with wild_server(numbered(1)) as server, quick_gate(http=names) as gate, Gate(gate.url, name="shop") as shop:
        url = f"http://agents.test:{server.port}"
        assert (await register(gate, url)).json["address"] == "127.0.0.1"
        names.addresses = {"agents.test": ["169.254.169.254"]}
        assert await called(shop, "o1") == 1
        assert b"\r\nhost: agents.test:" in server.requests[0]
        refused = await register(gate, url)
        assert (refused.status, refused.json["code"]) == (403, "forbidden")
        assert await called(shop, "o2") == 1
        names.addresses = {}
        assert (await register(gate, url)).json["address"] == "127.0.0.1"  # a silent name server ends no registration
        names.addresses = {"agents.test": ["127.0.0.2"]}
        assert (await register(gate, url)).json["address"] == "127.0.0.2"
        with pytest.raises(CallFailed) as raised:
            await called(shop, "o3")
        assert "127.0.0.2" in raised.value.detail
        names.addresses = {"agents.test": ["127.0.0.1", "10.0.0.1"]}
        assert (await register(gate, url)).status == 403


@realtime
async def test_localhost_is_where_plain_servers_listen() -> None:
    """A1: `localhost` works by default, by the old kind of address."""
    async with wild_server(numbered(1)) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        assert (await register(gate, f"http://localhost:{server.port}")).json["address"] == "127.0.0.1"
        assert await called(shop) == 1
