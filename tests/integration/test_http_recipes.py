"""The page about HTTP shows what happens: its recipes are run, its answers come."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from pathlib import Path
from typing import Any, Final

from agentgate import Agent, Context
from agentgate.model import Change, Claim, KeyId
from tests.integration.real_gate import RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime

PAGE: Final = (Path(__file__).parents[2] / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
RECIPE: Final = re.compile(r"```sh\n(.*?)```\n\n```json\n(.*?)```", re.DOTALL)
GATE: Final = "http://127.0.0.1:7070"
ANYTHING: Final = "…"


def order_agent() -> Agent:
    agent = Agent("order_agent")

    @agent.handles("confirm")
    async def confirm(order: dict[str, Any], ctx: Context) -> dict[str, str]:
        return {"receipt": f"r-{ctx.business_key}"}

    @agent.handles("status", effect="read")
    async def status(order: str) -> str:
        return "confirmed"

    @agent.handles("pack")
    async def pack(order: None) -> str:
        await asyncio.sleep(0.5)
        return "packed"

    return agent


async def lose_a_call(gate: RunningGate) -> None:
    """A call whose agent went away while it worked on it."""
    key = KeyId("default", "order_agent", "shop", "confirm", "order_99", "run")
    ledger = gate.platform.gateway.ledger
    await ledger.claim(Claim(key=key, fingerprint="f", agent="order_agent", unit="u1", instance="gone"))
    await ledger.report(Change(key=key, epoch=1, unit="u1", event="lost"))


def fits(shown: Any, answer: Any) -> bool:
    """Whether an answer has everything that is shown of it."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(name in answer and fits(shown[name], answer[name]) for name in shown)
    if isinstance(shown, list):
        return isinstance(answer, list) and len(shown) == len(answer) and all(map(fits, shown, answer))
    return shown in (ANYTHING, answer)


@realtime
async def test_every_recipe_answers_as_shown() -> None:
    """I1, B6: what the page types is `curl` against loopback and nothing else, and it gets what the page shows."""
    recipes = RECIPE.findall(PAGE)
    assert len(recipes) == PAGE.count("```sh") >= 9
    async with running_gate() as gate, running_agent(gate, order_agent()):
        await lose_a_call(gate)
        for command, shown in recipes:
            words = shlex.split(command.replace("\\\n", ""))
            addresses = [word for word in words if "://" in word]
            assert words[:2] == ["curl", "-s"]
            assert [address.startswith(GATE + "/") for address in addresses] == [True]
            process = await asyncio.create_subprocess_exec(
                *(word.replace(GATE, gate.url) for word in words), "--noproxy", "*", stdout=asyncio.subprocess.PIPE
            )
            said, _ = await process.communicate()
            answer = json.loads(said)
            assert fits(json.loads(shown), answer), f"{command}\n{json.dumps(answer, indent=2, ensure_ascii=False)}"
