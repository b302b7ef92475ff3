"""What a slip of the pen over HTTP leads to: one error that names it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentgate import Agent, Context
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
