"""`agentgate calls` against a live gate, as an operator uses it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

from agentgate import Agent, Context
from agentgate.model import Change, Claim, KeyId
from tests.e2e.command import agentgate
from tests.integration.real_gate import RunningGate, running_agent, running_gate
from tests.integration.realtime import realtime

LOST = KeyId("default", "bank", "shop", "pay", "order:1", "run")
KEY = "shop:pay:order%3A1:run"


async def lose(gate: RunningGate, key: KeyId) -> None:
    ledger = gate.platform.gateway.ledger
    unit = f"unit of {key.target} {key.business_key}"
    await ledger.claim(Claim(key=key, fingerprint="f", agent=key.target, unit=unit, instance="gone"))
    await ledger.report(Change(key=key, epoch=1, unit=unit, event="lost"))


async def calls(gate: RunningGate, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(agentgate, "calls", *arguments, "--url", gate.url)


def bank() -> Agent:
    agent = Agent("bank")

    @agent.handles("pay")
    async def pay(order: Any, ctx: Context) -> str:
        return "paid"

    return agent


@realtime
async def test_a_lost_call_is_found_shown_and_settled() -> None:
    """C4, I3: list names it, show says what is known, settle ends it, and show then tells the operator's answer."""
    async with running_gate() as gate, running_agent(gate, bank()):
        await lose(gate, LOST)
        await gate.post("/v1/calls", {"target": "bank", "task_type": "pay", "business_key": "o2"})
        listed = (await calls(gate, "list", "--state", "unknown")).stdout
        assert listed.split()[:5] == ["KEY", "TARGET", "STATE", "CODE", "FIRST"]
        assert KEY in listed
        assert "client:pay:o2:run" not in listed
        assert "client:pay:o2:run" in (await calls(gate, "list")).stdout
        found = json.loads((await calls(gate, "list", "--target", "bank", "--json")).stdout)
        assert [call["key"] for call in found["calls"]] == ["client:pay:o2:run", KEY]
        before = await calls(gate, "show", KEY)
        assert (before.returncode, before.stderr.split(":")[0]) == (4, "outcome_unknown")
        assert "agentgate calls settle " in before.stderr
        settled = await calls(gate, "settle", KEY, "--as", "done", "--value", '{"receipt": 7}')
        assert (settled.returncode, settled.stderr) == (0, f"{KEY} is done now\n")
        after = await calls(gate, "show", KEY)
        assert (after.returncode, json.loads(after.stdout)) == (0, {"receipt": 7})
        assert json.loads((await calls(gate, "show", found["calls"][1]["id"], "--json")).stdout)["replayed"] is True
        for name in (KEY, found["calls"][1]["id"]):
            again = await calls(gate, "settle", name, "--target", "bank", "--as", "not-done")
            assert (again.returncode, "is done already. There is nothing to settle: " in again.stderr) == (1, True)
            assert "out of date" not in again.stderr


@realtime
async def test_a_key_at_several_targets_has_to_be_chosen() -> None:
    """I3: the error names the targets; with one of them, that call and no other is settled."""
    async with running_gate() as gate:
        for target in ("bank", "skill:pay"):
            await lose(gate, LOST._replace(target=target))
        unclear = await calls(gate, "settle", KEY, "--as", "failed", "--detail", "no")
        assert (unclear.returncode, unclear.stdout) == (1, "")
        assert "choose with --target bank, --target skill:pay" in unclear.stderr
        done = await calls(gate, "settle", KEY, "--target", "skill:pay", "--as", "failed", "--detail", "no", "--json")
        assert json.loads(done.stdout)["state"] == "failed"
        left = json.loads((await calls(gate, "list", "--state", "unknown", "--json")).stdout)
        assert [call["target"] for call in left["calls"]] == ["bank"]


@realtime
async def test_mistakes_are_one_sentence() -> None:
    """I3: what is wrong and what to do next, with an exit code that says which kind it was."""
    async with running_gate() as gate:
        for arguments, code, why in (
            (("show", "nonsense"), 1, "nothing is known of 'nonsense'"),
            (("show", "a:b:c:d"), 1, "there is no call 'a:b:c:d'"),
            (("settle", "a:b:c:d", "--as", "done"), 2, "--as done needs --value"),
            (("settle", "a:b:c:d", "--as", "done", "--value", "{x"), 2, "--value is not JSON"),
            (("settle", "a:b:c:d", "--as", "failed", "--value", "1"), 2, "it means nothing with --as failed"),
            (("settle", "a:b:c:d", "--as", "perhaps"), 2, "perhaps"),
        ):
            done = await calls(gate, *arguments)
            assert (done.returncode, done.stdout, why in done.stderr) == (code, "", True), done.stderr
        empty = await calls(gate, "list")
        assert (empty.returncode, empty.stderr) == (0, "no calls yet\n")
