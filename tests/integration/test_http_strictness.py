"""What a slip of the pen over HTTP leads to: one error that names it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agentgate import Agent, Context
from tests.e2e.command import agentgate
from tests.integration.real_gate import running_agent, running_gate
from tests.integration.realtime import realtime

CALL = {"target": "stock", "task_type": "look", "effect": "read"}


@pytest.mark.parametrize(
    ("more", "headers", "named"),
    [
        ({"priority": 99}, {}, "`priority` is 0 to 9, not 99"),
        ({"timeout_ms": 0}, {}, "`timeout_ms` is 1 to 86400000 (a day), not 0"),
        ({"timeout_ms": 10**11}, {}, "`timeout_ms` is 1 to 86400000 (a day), not 100000000000"),
        ({}, {"Content_Encoding": "gzip"}, "the header Content-Encoding is not understood"),
        ({"targt": "x"}, {}, "targt"),
    ],
)
@realtime
async def test_numbers_and_names_that_mean_nothing_are_refused(
    more: dict[str, Any], headers: dict[str, str], named: str
) -> None:
    """I7: nothing that was said is ignored without a word."""
    async with running_gate() as gate:
        answer = await gate.post("/v1/calls", CALL | more, **headers)
        assert (answer.status, answer.json["code"]) == (400, "bad_request")
        assert named in answer.json["detail"]


@realtime
async def test_a_misspelt_skill_is_refused() -> None:
    """I6: a lost `repeatable` or `effect` would change what a write means, so it is an error that names the place."""
    async with running_gate() as gate:
        card = {"endpoint": "http://127.0.0.1:9", "skills": [{"task_type": "reserve", "repeatble": True}]}
        answer = await gate.get("/v1/agents/stock/instances/s1", method="PUT", body=json.dumps(card))
        assert (answer.status, "repeatble" in answer.json["detail"]) == (400, True)


@realtime
async def test_a_parameter_that_is_wrong_is_named() -> None:
    """I7: the answer says which part of the query it does not understand."""
    async with running_gate() as gate:
        answer = await gate.get("/v1/calls?state=bogus&limit=0")
        assert (answer.status, answer.json["code"]) == (400, "bad_request")
        assert "`limit`" in answer.json["detail"] or "`state`" in answer.json["detail"]


@realtime
async def test_a_call_made_in_a_handler_waits_for_its_end() -> None:
    """E1, C2: whoever calls with a unit token has a deadline of its own, and gets the answer instead of an id."""
    agent = Agent("stock")

    @agent.handles("reserve")
    async def reserve(seconds: float, ctx: Context) -> str:
        await asyncio.sleep(seconds)
        return "reserved"

    async with running_gate() as gate, running_agent(gate, agent):
        gate.server.calls._answer_within_s = 0.1  # noqa: SLF001 - an ordinary one is long for a test
        body = {"target": "stock", "task_type": "reserve", "business_key": "o1", "payload": 0.5}
        assert (await gate.post("/v1/calls", body)).status == 202
        child = body | {"business_key": "o2", "token": "of a unit that is gone"}
        assert (await gate.post("/v1/calls", child)).status != 202


class Stranger(BaseHTTPRequestHandler):
    """Another server that answers JSON to everything."""

    def do_GET(self) -> None:
        self.answer(200, ["hello"])

    def do_PUT(self) -> None:
        self.answer(501, {"error": "no"})

    def answer(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def stranger() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    "command", ["agents", "breakers", "findings", "chains x", "calls list", "agents off x --reason y"]
)
def test_another_server_is_not_taken_for_a_gate(command: str, tmp_path: Path) -> None:
    """I7: no stack trace and no half answer where the address is wrong, but what to look at."""
    with stranger() as url:
        done = agentgate(*command.split(), cwd=tmp_path, environ={"AGENTGATE_URL": url})
    assert done.returncode == 3
    assert "answers, but it is not a gate" in done.stderr
    assert "Traceback" not in done.stderr
