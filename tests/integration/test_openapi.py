"""The OpenAPI document says what the API does: read by a validator, and tried by schemathesis against a live gate."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from agentgate import Agent, Context
from agentgate.errors import CODES
from agentgate.model import AGENT_SCOPE, SCOPES
from agentgate.server.api import HANDLERS
from agentgate.server.openapi import document
from tests.integration.real_gate import running_agent, running_gate
from tests.integration.realtime import realtime

DOCUMENT = document(HANDLERS)
OPERATIONS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]
ROOT = Path(__file__).parents[2]
CONFIG = str(Path(__file__).with_name("schemathesis.toml"))
SEED = 1
EXAMPLES_MAX = 12
FUZZ_S = 100  # alone on a machine it takes a fifth of that


def order_agent() -> Agent:
    agent = Agent("order_agent")

    @agent.handles("confirm")
    async def confirm(order: Any, ctx: Context) -> Any:
        return {"receipt": "r-17", "order": order}

    return agent


def examples(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each schema with what is shown for it."""
    for media_type, shown in content.items():
        if "json" in media_type:
            values = [one["value"] for one in shown["examples"].values()] if "examples" in shown else [shown["example"]]
            yield from ((shown["schema"], value) for value in values)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_every_operation_is_documented(path: str, method: str) -> None:
    """B6: each says what it does, which scope it needs, its errors by code, and shows an example of each body."""
    operation = DOCUMENT["paths"][path][method]
    assert operation["summary"]
    needed = (operation["x-agentgate-scope"] or "").split(" or ")  # any one of them
    assert set(needed) <= {"", *SCOPES, AGENT_SCOPE + "{agent}"}
    contents = [response["content"] for status, response in operation["responses"].items() if status != "204"]
    contents += [operation["requestBody"]["content"]] if "requestBody" in operation else []
    for content in contents:
        for schema, value in examples(content):
            validator = jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]}, offline=True)
            assert [error.message for error in validator.iter_errors(value)] == []
        assert all(shown.get("example", shown.get("examples")) is not None for shown in content.values())
    for status, response in operation["responses"].items():
        problems = response.get("content", {}).get("application/problem+json", {}).get("examples", {})
        assert [code for code in problems if CODES[code].http_status != int(status)] == []
        assert int(status) < 400 or problems or path == "/readyz"


def test_a_call_may_come_to_every_code_and_says_so() -> None:
    """B6, I3: whatever the path of a call can end with is in the document of a call; the rest is for other work."""
    responses = DOCUMENT["paths"]["/v1/calls"]["post"]["responses"]
    documented = {
        code
        for response in responses.values()
        for code in response["content"].get("application/problem+json", {}).get("examples", {})
    }
    assert set(CODES) - documented == {"not_found", "version_conflict"}


@realtime
async def test_the_document_is_served_and_fetches_nothing() -> None:
    """I6: JSON at /schema, the same for everybody; no page, and no address of another host in it."""
    async with running_gate() as gate:
        answer = await gate.get("/schema")
        assert (answer.status, answer.headers["content-type"]) == (200, "application/vnd.oai.openapi+json")
        assert answer.json == json.loads(json.dumps(DOCUMENT))
        assert (await gate.get("/schema/swagger")).status == 404
        named = set(re.findall(rb"https?://[^/\"]+", answer.body))
        assert named == {b"https://iana.org", b"http://127.0.0.1:9000"}  # names of problem types, and an example


@pytest.mark.timeout(FUZZ_S + 20)
@realtime
async def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """I6, issue "done when": requests made from our own document, right and wrong ones, get documented answers."""
    async with running_gate() as gate, running_agent(gate, order_agent()):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.integration.fuzz_api", "--config-file", CONFIG, "run", f"{gate.url}/schema"),
            *("--seed", str(SEED), "--max-examples", str(EXAMPLES_MAX), "--no-color"),
            *("--generation-database", "none", "--request-timeout", "20"),
            *("--exclude-path", "/v1/waits/stream"),  # it has no end; its own tests read it
            *("--report", "junit", "--report-dir", str(tmp_path)),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(FUZZ_S):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        assert process.returncode == 0, said.decode()
        assert gate.platform.gateway.counters.outcomes[""] > 0
        assert gate.platform.gateway.counters.outcomes["internal"] == 0
