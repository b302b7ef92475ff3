"""The switch of an agent over HTTP."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any

import pytest
import structlog

from agentgate import CallFailed, Gate
from agentgate.errors import StoreBroke
from tests.integration.real_gate import RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime
from tests.integration.test_http import stock_agent


async def put(gate: RunningGate, path: str, body: bytes | dict[str, Any]) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    def ask() -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", gate.server.port, timeout=10)
        connection.request("PUT", path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    return await asyncio.to_thread(ask)


@realtime
async def test_an_agent_is_switched_off_and_on() -> None:
    """A6, H7: off, its callers are refused with the reason and the list shows it; the change is logged with who."""
    async with running_gate() as gate, running_agent(gate, stock_agent()), Gate(gate.url, name="shop") as shop:
        with structlog.testing.capture_logs() as logs:
            status, state = await put(gate, "/v1/agents/stock/switch", {"on": False, "reason": " ticket 7 "})
        assert (status, state["agent"], state["on"], state["off"]["reason"]) == (200, "stock", False, "ticket 7")
        assert [(log["event"], log["agent"], log["on"], log["by"], log["reason"]) for log in logs] == [
            ("agent_switched", "stock", False, "somebody on this machine", "ticket 7")
        ]
        with pytest.raises(CallFailed, match=r"no_route.*ticket 7"):
            await shop.call("stock", "reserve", "order_1", "A-7")
        [agent] = (await gate.get("/v1/agents")).json["agents"]
        assert agent["off"] == state["off"]
        status, state = await put(gate, "/v1/agents/stock/switch", {"on": True})
        assert (status, state) == (200, {"agent": "stock", "on": True, "off": None})
        assert await shop.call("stock", "reserve", "order_1", "A-7") == "shelf of A-7"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/agents/stock/switch", {"on": False}, 400, "takes a `reason`"),
        ("/v1/agents/stock/switch", {"on": False, "reason": "  "}, 400, "takes a `reason`"),
        ("/v1/agents/stock/switch", {"on": False, "reason": "a\nb"}, 400, "printable"),
        ("/v1/agents/stock/switch", {"on": False, "reason": "x" * 201}, 400, "length <= 200"),
        ("/v1/agents/stock/switch", {"on": "no", "reason": "x"}, 400, "Expected `bool`"),
        ("/v1/agents/stock/switch", {"off": True}, 400, "field"),
        ("/v1/agents/stock/switch", b"{", 400, "the body is {on, reason}"),
        ("/v1/agents/stock/switch", b'{"on": false, "reason": "\xff"}', 400, "the body is {on, reason}"),
        ("/v1/agents/stock/switch", b"[" * 4000, 400, "the body is {on, reason}"),
        ("/v1/agents/nobody/switch", {"on": True}, 404, "no agent 'nobody'"),
        ("/v1/agents/stock/switch", b" " * 5000, 413, ""),
    ],
)
@realtime
async def test_what_cannot_be_switched_is_refused(path: str, body: Any, status: int, words: str) -> None:
    """A6: a wrong body, a missing reason or an unknown agent changes nothing, and says what would be right."""
    async with running_gate() as gate, running_agent(gate, stock_agent()):
        answer, problem = await put(gate, path, body)
        assert (answer, words in problem["detail"]) == (status, True), problem
        [agent] = (await gate.get("/v1/agents")).json["agents"]
        assert agent["off"] is None


@realtime
async def test_a_switch_that_is_not_stored_says_so() -> None:
    """A6: when the store fails the switch holds all the same, and whoever switched knows that a restart forgets it."""
    async with running_gate() as gate, running_agent(gate, stock_agent()):

        async def fail(*_: Any) -> None:
            raise StoreBroke("the disk is full")

        gate.platform.directory.save_now = fail  # type: ignore[method-assign]  # a store that fails
        status, problem = await put(gate, "/v1/agents/stock/switch", {"on": False, "reason": "x"})
        assert (status, problem["code"], "not stored yet" in problem["detail"]) == (503, "store_down", True)
        [agent] = (await gate.get("/v1/agents")).json["agents"]
        assert agent["off"]["reason"] == "x"
