"""Calls to agents without our SDK, over real sockets: what leaves, what comes back, and that nothing stays held."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentgate import CallFailed, Gate, OutcomeUnknown
from tests.e2e.command import agentgate
from tests.integration.http_agents import (
    SHORT,
    ask,
    failing,
    heads,
    nothing_held,
    quick_gate,
    register,
    registered,
    task_type_of,
)
from tests.integration.real_gate import RunningGate
from tests.integration.realtime import realtime
from tests.integration.wild_server import Behaviour, Visit, answering, ok, wild_server


async def echo(visit: Visit) -> None:
    """Answer every request with its body."""
    while True:
        request = await visit.request()
        await visit.say(ok(request.partition(b"\r\n\r\n")[2]))


def saying_in_turn(*answers: bytes) -> Behaviour:
    """A different answer each time; the last one for ever."""
    left = list(answers)

    async def behave(visit: Visit) -> None:
        while True:
            await visit.request()
            await visit.say(left.pop(0) if len(left) > 1 else left[0])

    return behave


# --- what leaves


@realtime
async def test_an_agent_gets_plain_json_with_everything_it_may_need() -> None:
    """A1, C1, H1: one POST to the task type, the payload as its body, and in the header key, caller, time and unit."""
    async with wild_server(echo) as server, quick_gate() as gate, Gate(gate.url, name="shop ü") as shop:
        assert (await register(gate, server.url + "/base/")).status == 200
        assert await shop.call("stock", "sell", 'o"1', {"n": [1, None]}) == {"n": [1, None]}
        [request] = server.requests
        head = heads(request)
        token = head.pop("agentgate-unit-token")
        left_ms = head.pop("agentgate-remaining-ms")
        unit = head.pop("agentgate-unit")
        trace = head.pop("traceparent").split("-")
        assert head == {
            "": "POST /base/sell HTTP/1.1",
            "host": f"127.0.0.1:{server.port}",
            "user-agent": "agentgate",
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "content-length": "14",
            "idempotency-key": '"shop%20%C3%BC:sell:o%221:run"',
            "agentgate-business-key": 'o"1',
            "x-envoy-expected-rq-timeout-ms": left_ms,
            "agentgate-caller": "shop%20%C3%BC",
            "agentgate-action": "run",
            "agentgate-attempt": "1",
        }
        claim = gate.platform.gateway.policies.tokens.read(token)
        assert claim is not None
        assert (claim.unit, claim.root) == (unit, trace[1])
        assert 25_000 < int(left_ms) <= 30_000
        [span] = [span for span in (await ask(gate, "GET", f"/v1/chains/{trace[1]}")).json["spans"] if "unit" in span]
        assert (span["span_id"], span["instance"], span["unit"]) == (trace[2], "i1", unit)


@realtime
async def test_a_read_has_no_key() -> None:
    """C1: what is not kept in the ledger carries no idempotency key; a check says which write it asks about."""
    async with wild_server(echo) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        await shop.call("stock", "look", "", 1, effect="read")
        await shop.call("stock", "check:book", "o1", 1, effect="read")
        first, second = map(heads, server.requests)
        assert not {"idempotency-key", "agentgate-key", "agentgate-business-key"} & set(first)
        assert "idempotency-key" not in second
        asked = {name: second[name] for name in ("", "agentgate-key", "agentgate-business-key")}
        assert asked == {
            "": "POST /check:book HTTP/1.1",
            "agentgate-key": '"shop:book:o1:run"',
            "agentgate-business-key": "o1",
        }


# --- what comes back: the table


@realtime
async def test_a_repeated_key_is_answered_from_the_ledger() -> None:
    """C2: an HTTP agent need not know keys: the second call with one does not reach it."""
    async with wild_server(echo) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        assert [await shop.call("stock", "sell", "o1", 7) for _ in range(3)] == [7, 7, 7]
        assert len(server.requests) == 1


FINAL: dict[str, tuple[bytes, str]] = {
    "500": (ok(b'{"detail":"boom"}', status="500 No"), "handler_error"),
    "400": (ok(b"", status="400 No"), "bad_request"),
    "422": (ok(b"", status="422 No"), "bad_request"),
    "409": (ok(b"", status="409 No"), "rejected"),
    "rejected": (ok(b'{"code":"rejected","detail":"sold out"}', status="422 No"), "rejected"),
    "302": (ok(b"", "Location: http://127.0.0.1:1/", status="302 Found"), "malformed_output"),
    "no JSON": (ok(b"<html>"), "malformed_output"),
    "NaN": (ok(b"NaN"), "malformed_output"),
    "NUL": (ok(b'"\\u0000"'), "malformed_output"),
    "too deep": (ok(b"[" * 65 + b"]" * 65), "malformed_output"),
    "too large": (ok(b'"' + b"x" * 262_144 + b'"'), "malformed_output"),
    "compressed": (ok(b"\x1f\x8b", "Content-Encoding: gzip"), "malformed_output"),
}


@pytest.mark.parametrize("name", FINAL)
@realtime
async def test_what_is_final_is_stored(name: str) -> None:
    """4.1, 4.2: of a write each of these is the answer, for whoever asks again; nothing runs a second time."""
    said, code = FINAL[name]
    async with wild_server(answering(said)) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        errors = [await failing(shop, "sell") for _ in range(2)]
        assert [(error.code, error.sent) for error in errors] == [(code, True)] * 2
        assert len(server.requests) == 1
        await nothing_held(gate)


@pytest.mark.parametrize("status", ["404 Not Found", "405 No"])
@realtime
async def test_a_task_type_that_is_not_there_frees_the_key(status: str) -> None:
    """4.1: nothing happened: the call fails as `no_route`, and the same key may run later."""
    behaviour = saying_in_turn(ok(b"", status=status), ok(b"1"))
    async with wild_server(behaviour) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        error = await failing(shop, "sell")
        assert (error.code, error.sent) == ("no_route", False)
        assert await shop.call("stock", "sell", "o1", {"n": 1}) == 1


@pytest.mark.parametrize(
    "said",
    [
        ok(b"", "Retry-After: 1", status="429 Slow"),
        ok(b"", "Retry-After: 1", status="503 Slow"),
        ok(b"", "Date: Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After: Sun, 06 Nov 1994 08:49:38 GMT", status="503 Slow"),
    ],
)
@realtime
async def test_a_throttled_agent_is_left_alone_by_everybody(said: bytes) -> None:
    """B4: nothing happened, so a write is tried again, after the time that was named; others wait meanwhile."""
    behaviour = saying_in_turn(said, ok(b"1"))
    async with wild_server(behaviour) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        loop = asyncio.get_running_loop()
        began = loop.time()
        first = asyncio.ensure_future(shop.call("stock", "sell", "o1", 1))
        await server.asked.wait()
        await gate.until(lambda: bool(gate.platform.gateway.policies.cool_down.cooling(loop.time())))
        hurried = await failing(shop, "look", read=True, timeout=0.3)
        assert (hurried.code, hurried.sent) == ("overloaded", False)
        assert (await first, len(server.requests)) == (1, 2)
        assert loop.time() - began >= 1.0
        assert gate.platform.gateway.policies.breakers.state("stock", "sell", loop.time()) == "closed"


@realtime
async def test_an_agent_may_delay_one_call() -> None:
    """4.1: our code `overloaded` delays this call alone; no cool-down starts."""
    behaviour = saying_in_turn(ok(b'{"code":"overloaded"}', status="503 Later"), ok(b"1"))
    async with wild_server(behaviour) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        assert await shop.call("stock", "sell", "o1", 1) == 1
        assert gate.platform.gateway.policies.cool_down.cooling(asyncio.get_running_loop().time()) == {}


async def resets(visit: Visit) -> None:
    await visit.request()
    visit.reset()


async def closes(visit: Visit) -> None:
    await visit.request()
    visit.close()


async def stops(visit: Visit) -> None:
    await visit.request()
    await visit.say(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n[1")
    await visit.hang()


async def babbles(visit: Visit) -> None:
    await visit.request()
    await visit.flood(b"HTTP/1.1 100 Continue\r\n\r\n")


LOST: dict[str, Behaviour] = {
    "502": answering(ok(b"bad gateway", status="502 Bad Gateway")),
    "503": answering(ok(b"", status="503 No")),
    "504": answering(ok(b"", status="504 No")),
    "reset": resets,
    "closed": closes,
    "stopped": stops,
    "garbage": answering(b"SSH-2.0-x\r\n"),
    "babble": babbles,
}


@pytest.mark.parametrize("name", LOST)
@realtime
async def test_a_lost_write_is_unknown_and_runs_once(name: str) -> None:
    """C4, 4.1: whatever loses the answer to a write without a check: nobody can tell, nothing runs again."""
    async with wild_server(LOST[name]) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        # Whoever saw it is told how it was lost; afterwards it is only known that it was.
        for how in ("gave no answer: ", "went away while it worked on it, or gave no answer"):
            error = await failing(shop, "sell")
            assert isinstance(error, OutcomeUnknown)
            assert (error.code, error.sent) == ("outcome_unknown", True)
            assert error.detail.startswith(f"stock {how}")
            assert (name, how[:4]) != ("garbage", "gave") or "not HTTP" in error.detail
        assert len(server.requests) == 1
        await nothing_held(gate)
        await server.all_ended()


@pytest.mark.parametrize("name", LOST)
@pytest.mark.parametrize("task_type", ["look", "mark"])
@realtime
async def test_what_may_run_again_does_so_elsewhere(name: str, task_type: str) -> None:
    """B5, 4.1: a read, or a repeatable write, whose answer is lost is tried again, at another instance."""
    async with wild_server(LOST[name]) as bad, wild_server(answering(ok(b"1"))) as good, quick_gate() as gate:
        await registered(gate, bad, good)
        async with Gate(gate.url, name="shop") as shop:
            effect: Any = "read" if task_type == "look" else "write"
            for number in range(4):
                assert await shop.call("stock", task_type, f"o{number}", 1, effect=effect) == 1
        assert 1 <= len(bad.requests) <= 4
        await nothing_held(gate)


@pytest.mark.parametrize(("happened", "value", "runs"), [(b'{"did":1}', {"did": 1}, 1), (b"null", 2, 2)])
@realtime
async def test_a_lost_write_with_a_check_is_asked_about(happened: bytes, value: object, runs: int) -> None:
    """C4, 4.2: the check tells: done, and its answer stands, or not done, and it runs."""
    seen: list[str] = []

    async def behave(visit: Visit) -> None:
        while True:
            task_type = task_type_of(await visit.request())
            seen.append(task_type)
            if task_type == "check:book":
                await visit.say(ok(happened))
            elif seen.count("book") == 1:
                visit.reset()
                return
            else:
                await visit.say(ok(b"2"))

    async with wild_server(behave) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server)
        assert await shop.call("stock", "book", "o1", 1) == value
        assert (seen.count("book"), seen.count("check:book")) == (runs, 1)


@realtime
async def test_an_answer_that_does_not_fit_its_schema_is_malformed() -> None:
    """B4, E11: what the card declares is checked, as for any agent."""
    async with wild_server(echo) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        skill = {
            "task_type": "sell",
            "output_schema": {"type": "string"},
            "input_schema": {"type": ["string", "integer"]},
        }
        answer = await ask(gate, "PUT", "/v1/agents/stock/instances/i1", {"endpoint": server.url, "skills": [skill]})
        assert answer.status == 200
        assert await shop.call("stock", "sell", "o1", "x") == "x"
        with pytest.raises(CallFailed) as raised:
            await shop.call("stock", "sell", "o2", 1)
        assert raised.value.code == "malformed_output"
        error = await failing(shop, "sell", "o3")
        assert (error.code, error.sent, len(server.requests)) == ("bad_request", False, 2)


@realtime
async def test_nobody_listening_is_not_sent() -> None:
    """B4: no connection: nothing happened; after the attempts the call fails and the key is free."""
    async with wild_server(echo) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await register(gate, "http://127.0.0.1:1")
        error = await failing(shop, "sell")
        assert (error.code, error.fault, error.sent) == ("agent_lost", "unreachable", False)
        assert "onnection refused" in error.detail
        await register(gate, server)
        assert await shop.call("stock", "sell", "o1", {"n": 1}) == {"n": 1}
        assert await shop.call("stock", "look", "", 1, effect="read") == 1


# --- what is shown


async def seen(gate: RunningGate) -> tuple[str, bool, str]:
    """The state of the one instance, whether it has answered, and its trouble."""
    [agent] = (await ask(gate, "GET", "/v1/agents")).json["agents"]
    [instance] = agent["instances"]
    return instance["state"], instance["answered_s"] is not None, instance["trouble"]


async def listed(gate: RunningGate) -> str:
    """The line of `agentgate agents`."""
    return (await asyncio.to_thread(agentgate, "agents", "--url", gate.url)).stdout.splitlines()[1]


@realtime
async def test_nothing_is_said_of_an_endpoint_that_has_not_answered() -> None:
    """A1, A8: without a probe nobody knows whether it is there, until a call comes back, or does not."""
    async with wild_server(echo) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await register(gate, server)
        assert await seen(gate) == ("registered", False, "")
        assert "  registered, no answer yet  " in await listed(gate)
        await shop.call("stock", "sell", "o1", 1)
        await register(gate, server)
        assert await seen(gate) == ("connected", True, "")
        assert "  connected  " in await listed(gate)
        await register(gate, "http://127.0.0.1:1")
        assert (await failing(shop, "sell", "o2")).code == "agent_lost"
        state, answered, trouble = await seen(gate)
        assert (state, answered, "onnection refused" in trouble) == ("registered", False, True)
        assert "registered, but " in await listed(gate)


@realtime
async def test_an_answered_probe_is_an_answer() -> None:
    """A8: whatever it says; and a registration that only changes the card forgets nothing."""
    async with wild_server(echo) as server, quick_gate(SHORT) as gate:
        await register(gate, server, probe="/healthz")
        await gate.until(lambda: next(iter(gate.platform.gateway.http_agents)).answered_at is not None)
        await register(gate, server, probe="/healthz", concurrency=2)
        _, answered, trouble = await seen(gate)
        assert (answered, trouble) == (True, "")


@realtime
async def test_people_see_where_an_agent_is_and_callers_do_not() -> None:
    """A1, I6: `/v1/agents` names kind and endpoint; the routes that agents fetch do not."""
    async with wild_server(echo) as server, quick_gate() as gate, Gate(gate.url, name="shop") as shop:
        await registered(gate, server, tier="core", version="1.2", concurrency=3)
        await shop.call("stock", "sell", "o1", 1)
        [agent] = (await ask(gate, "GET", "/v1/agents")).json["agents"]
        assert (agent["tier"], len(agent["skills"])) == ("core", 5)
        [instance] = agent["instances"]
        shown = {name: instance[name] for name in ("kind", "endpoint", "state", "concurrency", "version")}
        assert shown == {
            "kind": "http", "endpoint": server.url, "state": "connected", "concurrency": 3, "version": "1.2",
        }  # fmt: skip
        said: list[bytes] = []
        session = gate.platform.gateway.connect(said.append, lambda _reason: None)
        session.on_frame(
            '[{"jsonrpc":"2.0","id":"h","method":"hello","params":{"agent":"spy","instance":"s1"}},'
            '{"jsonrpc":"2.0","id":"r","method":"routes","params":{}}]'
        )
        await gate.until(lambda: bool(said))
        [route] = json.loads(said[0])[1]["result"]["snapshot"]["routes"]
        assert (route["instances"], str(server.port) in said[0].decode()) == (["i1"], False)
        session.end("the test is over")
        metrics = (await ask(gate, "GET", "/metrics")).body.decode()
        assert 'agentgate_http_answers_total{result="2xx"} 1.0' in metrics
