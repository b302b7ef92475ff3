"""The quota of an agent over HTTP, and what over a restart remains of it."""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from agentgate import CallFailed, Gate
from agentgate.errors import StoreBroke
from tests.integration.real_gate import RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime
from tests.integration.test_http import stock_agent

PATH = "/v1/agents/stock/quota"


async def ask(gate: RunningGate, method: str, path: str, body: bytes | dict[str, Any] | None = None) -> tuple[int, Any]:
    data = json.dumps(body).encode() if isinstance(body, dict) else body

    def exchange() -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", gate.server.port, timeout=10)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    return await asyncio.to_thread(exchange)


@realtime
async def test_an_agent_is_limited_while_the_gate_runs(tmp_path: Path) -> None:
    """A6, H7: the quota holds at once and after a restart, is shown and logged, and can be taken away."""
    store = f"sqlite:{tmp_path / 'gate.sqlite'}"
    async with running_gate(store) as gate, running_agent(gate, stock_agent()):
        with structlog.testing.capture_logs() as logs:
            assert await ask(gate, "PUT", PATH, {"units": 1, "per_seconds": 3600}) == (
                200,
                {"agent": "stock", "quota": {"units": 1.0, "per_seconds": 3600.0}},
            )
        assert [(log["event"], log["agent"], log["quota"]) for log in logs] == [
            ("agent_quota_set", "stock", "1 units a 3600 s")
        ]
        [agent] = (await gate.get("/v1/agents")).json["agents"]
        assert agent["quota"] == {"units": 1.0, "per_s": 3600.0}
        async with Gate(gate.url, name="shop") as shop:
            assert await shop.call("stock", "reserve", "order_1", "A-7") == "shelf of A-7"
            with pytest.raises(CallFailed, match=r"quota_exhausted: all callers together: 1 of 1 units.*agent=stock"):
                await shop.call("stock", "reserve", "order_2", "A-7")
    async with running_gate(store) as gate, running_agent(gate, stock_agent()), Gate(gate.url, name="shop") as shop:
        assert await shop.call("stock", "reserve", "order_3", "A-7") == "shelf of A-7"
        with pytest.raises(CallFailed, match="quota_exhausted"):
            await shop.call("stock", "reserve", "order_4", "A-7")
        assert await ask(gate, "DELETE", PATH) == (200, {"agent": "stock", "quota": None})
        assert await shop.call("stock", "reserve", "order_4", "A-7") == "shelf of A-7"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (PATH, {"units": -1, "per_seconds": 60}, 400, ">= 0"),
        (PATH, {"units": 1, "per_seconds": 0}, 400, ">= 1"),
        (PATH, {"units": 1, "per_seconds": 90_000}, 400, "<= 86400"),
        (PATH, {"units": 1}, 400, "per_seconds"),
        (PATH, {"units": 1, "per_seconds": 60, "per": 1}, 400, "unknown field"),
        (PATH, b"[" * 4000, 400, "the body is {units, per_seconds}"),
        ("/v1/agents/nobody/quota", {"units": 1, "per_seconds": 60}, 404, "no agent 'nobody'"),
        ("/v1/agents/skill:reserve/quota", {"units": 1, "per_seconds": 60}, 404, "no agent 'skill:reserve'"),
        (PATH, b" " * 5000, 413, ""),
    ],
)
@realtime
async def test_what_is_no_quota_is_refused(path: str, body: Any, status: int, words: str) -> None:
    """A6: a wrong body or an unknown agent changes nothing, and says what would be right."""
    async with running_gate() as gate, running_agent(gate, stock_agent()):
        answer, problem = await ask(gate, "PUT", path, body)
        assert (answer, words in problem["detail"]) == (status, True), problem
        [agent] = (await gate.get("/v1/agents")).json["agents"]
        assert agent["quota"] is None


@realtime
async def test_a_quota_that_is_not_stored_says_so() -> None:
    """A6: when the store fails the quota holds all the same, and whoever set it knows that a restart forgets it."""
    async with running_gate() as gate, running_agent(gate, stock_agent()):

        async def fail(*_: Any) -> None:
            raise StoreBroke("the disk is full")

        gate.platform.directory.save_now = fail  # type: ignore[method-assign]  # a store that fails
        status, problem = await ask(gate, "PUT", PATH, {"units": 5, "per_seconds": 60})
        assert (status, problem["code"], "not stored yet" in problem["detail"]) == (503, "store_down", True)
        [agent] = (await gate.get("/v1/agents")).json["agents"]
        assert agent["quota"] == {"units": 5.0, "per_s": 60.0}
