"""Registration by HTTP: who may, where, for how long, and what a probe, a silence and a restart of the gate mean."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from litestar import Request

from agentgate import CallFailed, Gate, OutcomeUnknown
from agentgate.core.presence import PresenceOptions
from agentgate.model import Card, Identity, Skill
from agentgate.model.link import HelloParams
from agentgate.sdk.greeting import Identity as Greeting
from agentgate.sdk.link import Link
from agentgate.sdk.websocket import gate_url, websocket
from agentgate.server.api import instances
from agentgate.server.api.scope import IDENTITY_KEY
from agentgate.server.problems import Refused
from tests.integration.http_agents import (
    QUICK,
    Names,
    ask,
    card,
    hang,
    nothing_held,
    quick_gate,
    register,
    registered,
    state_of,
)
from tests.integration.real_gate import RunningGate
from tests.integration.realtime import realtime
from tests.integration.wild_server import Visit, answering, ok, wild_server

PATH = "/v1/agents/stock/instances/i1"
SHORT = replace(QUICK, agents=replace(QUICK.agents, ttl_s=0.5))


def numbered(number: int) -> Any:
    """A server that answers with its number."""
    return answering(ok(str(number).encode()))


async def called(shop: Gate, key: str = "o1") -> Any:
    return await shop.call("stock", "sell", key, 1)


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


# --- presence


@realtime
async def test_a_registration_that_is_not_renewed_ends() -> None:
    """A8: after its time an instance is away, then lost; a new registration is as good as the first."""
    async with wild_server(numbered(1)) as server, quick_gate(SHORT) as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        assert await called(shop, "o1") == 1
        await gate.until(lambda: state_of(gate) == "away")
        await gate.until(lambda: state_of(gate) == "")
        assert len(gate.platform.gateway.http_agents) == 0
        await server.all_ended()
        await registered(gate, server)
        assert await called(shop, "o2") == 1


@realtime
async def test_a_registration_that_is_renewed_holds() -> None:
    """A8: longer than its time, and longer than a silence, it stays connected; one renewed late comes back."""
    async with wild_server(numbered(1)) as server, quick_gate(SHORT) as gate:
        await registered(gate, server)
        for _ in range(8):
            await asyncio.sleep(0.2)
            assert state_of(gate) == "connected"
            await register(gate, server)
        await gate.until(lambda: state_of(gate) == "away")
        await register(gate, server)
        assert state_of(gate) == "connected"


@realtime
async def test_work_in_hand_keeps_an_instance_that_was_not_renewed() -> None:
    """C4: a write that runs when the registration ends is answered; nothing new is sent, and then it is gone."""
    opens = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.request()
        await opens.wait()
        await visit.say(ok(b'"late"'))

    async with wild_server(behave) as server, quick_gate(SHORT) as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        selling = asyncio.ensure_future(called(shop))
        await server.asked.wait()
        await gate.until(lambda: state_of(gate) == "away")
        await asyncio.sleep(3 * QUICK.presence.grace_s)
        assert state_of(gate) == "away"
        opens.set()
        assert await selling == "late"
        await gate.until(lambda: state_of(gate) == "")
        await nothing_held(gate)


@realtime
async def test_leaving_waits_for_what_is_in_hand() -> None:
    """A6: after DELETE nothing new is sent; what runs is answered, and then the instance is gone."""
    opens = asyncio.Event()

    async def behave(visit: Visit) -> None:
        await visit.request()
        await opens.wait()
        await visit.say(ok(b'"late"'))

    async with wild_server(behave) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        selling = asyncio.ensure_future(called(shop))
        await server.asked.wait()
        assert (await ask(gate, "DELETE", PATH)).status == 204
        assert state_of(gate) == "draining"
        again = await register(gate, server)
        assert (again.status, again.json["code"], "1 calls in hand" in again.json["detail"]) == (
            503,
            "overloaded",
            True,
        )
        with pytest.raises(CallFailed):
            await shop.call("stock", "look", "", 1, effect="read", timeout=0.2)
        opens.set()
        assert await selling == "late"
        assert state_of(gate) == ""
        assert (await ask(gate, "DELETE", PATH)).status == 404
        await registered(gate, server)


@realtime
async def test_leaving_idle_is_at_once() -> None:
    """A6: an instance with nothing in hand is gone when DELETE is answered."""
    async with wild_server(numbered(1)) as server, quick_gate() as gate:
        await registered(gate, server)
        assert (await ask(gate, "DELETE", PATH)).status == 204
        assert (state_of(gate), len(gate.platform.gateway.http_agents)) == ("", 0)


def healthy(is_well: list[bool]) -> Any:
    """A server whose probe says what the list says; everything else is answered."""

    async def behave(visit: Visit) -> None:
        while True:
            request = await visit.request()
            if not request.startswith(b"GET /alive "):
                await visit.say(ok(b"1"))
            elif is_well[0]:
                await visit.say(ok(b"", status="204 Yes"))
            else:
                await visit.hang()

    return behave


@realtime
async def test_a_probe_that_fails_makes_an_instance_silent_and_one_that_succeeds_brings_it_back() -> None:
    """A8: silent, away, lost, as a link; while the registration holds it is asked on, and comes back by itself."""
    is_well = [True]
    async with wild_server(healthy(is_well)) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server, probe="/alive")
        await asyncio.sleep(2 * QUICK.presence.silent_s)
        assert state_of(gate) == "connected"
        is_well[0] = False
        await gate.until(lambda: state_of(gate) == "away")
        await gate.until(lambda: state_of(gate) == "")
        assert (await register(gate, server, probe="/alive")).status == 200  # its word alone does not bring it back
        assert state_of(gate) == ""
        is_well[0] = True
        await gate.until(lambda: state_of(gate) == "connected")
        assert await called(shop) == 1


@realtime
async def test_units_of_an_instance_that_is_lost_end() -> None:
    """A8, C4: a hanging process whose probe fails is lost with what it runs: a write becomes unknown, at once."""

    async def behave(visit: Visit) -> None:
        request = await visit.request()
        if request.startswith(b"GET"):
            await visit.say(ok(b"", status="500 No"))
        await visit.hang()

    async with wild_server(behave) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server, probe="/alive")
        with pytest.raises(OutcomeUnknown):
            await called(shop)
        await nothing_held(gate)
        assert gate.platform.gateway.counters.lost_units == 1


@realtime
async def test_hanging_probes_do_not_make_others_silent() -> None:
    """B14: probes are bounded; an instance that waits for its turn counts as it did before."""
    settings = replace(QUICK, agents=replace(QUICK.agents, probes_max=1))
    async with wild_server(hang) as bad, wild_server(numbered(1)) as good, quick_gate(settings) as gate:
        for number in range(4):
            await register(gate, bad, instance=f"bad{number}", probe="/alive")
        await register(gate, good, instance="good", probe="/alive")
        await gate.until(lambda: all(state_of(gate, f"bad{number}") == "" for number in range(4)))
        assert state_of(gate, "good") == "connected"


# --- a restart of the gate


def store_of(folder: Path) -> Path:
    return folder / "gate.sqlite"


PATIENT = replace(QUICK, presence=PresenceOptions(), server=replace(QUICK.server, drain_s=0.1))


async def saved(gate: RunningGate) -> None:
    """The routes are in the store."""
    await asyncio.sleep(3 * QUICK.directory.save_delay_s)
    assert (await gate.platform.ports.store.load_routes()).routes


@realtime
async def test_after_a_restart_calls_go_on_without_a_renewal(tmp_path: Path) -> None:
    """4.5: the endpoint is remembered with the routes: the first call after a restart reaches the agent at once."""
    async with wild_server(numbered(1)) as server:
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate:
            await registered(gate, server, version="1.2")
            await saved(gate)
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate, Gate(gate.url, name="shop") as shop:
            assert state_of(gate) == "connected"
            assert await shop.call("stock", "sell", "o1", 1, timeout=2) == 1
        async with quick_gate(replace(PATIENT, agents=replace(QUICK.agents, endpoint_allow=("10.0.0.0/8",))),
                              store=store_of(tmp_path)) as gate:  # fmt: skip
            assert len(gate.platform.gateway.http_agents) == 0  # what is allowed now counts


@pytest.mark.parametrize(("task_type", "runs"), [("sell", 1), ("book", 1), ("mark", 2)])
@realtime
async def test_what_ran_when_the_gate_died_is_lost_at_once(tmp_path: Path, task_type: str, runs: int) -> None:
    """C4, 4.5: nobody can be asked about a request of the gate before: a write is unknown or asked about by its check,
    a repeatable one runs again; none of them is called "never seen", and nobody waits for the instance to come back.
    """

    async def behave(visit: Visit) -> None:
        while True:
            request = await visit.request()
            if b"POST /check:book" in request:
                await visit.say(ok(b'"it happened"'))
            elif len(server.requests) == 1:
                await visit.hang()
                return
            else:
                await visit.say(ok(b'"again"'))

    async with wild_server(behave) as server:
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate, Gate(gate.url, name="shop") as shop:
            await registered(gate, server)
            calling = asyncio.ensure_future(shop.call("stock", task_type, "o1", 1))
            await server.asked.wait()
            calling.cancel()  # its caller leaves; what is keyed goes on
            await saved(gate)
            assert len(gate.platform.gateway.units) == 1
        async with quick_gate(PATIENT, store=store_of(tmp_path)) as gate, Gate(gate.url, name="shop") as shop:
            began = asyncio.get_running_loop().time()
            said = await _said(shop, task_type)
            assert said == {"sell": "outcome_unknown", "book": "it happened", "mark": "again"}[task_type]
            assert asyncio.get_running_loop().time() - began < 5.0
            assert sum(f"POST /{task_type} ".encode() in request for request in server.requests) == runs


async def _said(shop: Gate, task_type: str) -> Any:
    try:
        return await shop.call("stock", task_type, "o1", 1)
    except CallFailed as error:
        return error.code
