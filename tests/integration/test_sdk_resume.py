"""What survives a lost connection: running units, kept answers, their order and their end."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.model import Outcome
from tests.integration.sdk_gate import ScriptedGate, agent_of, hosted, virtual


@virtual
async def test_running_units_and_kept_answers_survive_a_lost_connection() -> None:
    """4.5: hello reports what runs and what is unacknowledged; the answer of a running unit comes over the new link."""
    release = asyncio.Event()
    gate = ScriptedGate()
    async with hosted(agent_of(release), gate):
        await gate.hello()
        gate.invoke("u1", "work", 1)
        gate.invoke("u2", "call", 2)
        call = await gate.call()
        gate.settle(call, Outcome(value=5))
        await gate.answer("u2")
        gate.wire.cut()
        hello = await gate.hello()
        assert [(unit["unit"], unit.get("answer", {}).get("value")) for unit in hello["units"]] == [
            ("u1", None),
            ("u2", 5),
        ]
        assert 0 < hello["units"][0]["remaining_ms"] < 30_000
        release.set()
        assert (await gate.answer("u1")).seq == 2
        gate.ack(2)
        gate.wire.cut()
        assert "units" not in await gate.hello()


@virtual
async def test_an_answer_given_while_the_link_is_down_is_reported() -> None:
    """4.5, F52: the handler ends while there is no connection; the next hello carries its answer, reads included."""
    release = asyncio.Event()
    gate = ScriptedGate()
    async with hosted(agent_of(release), gate):
        await gate.hello()
        gate.invoke("u1", "work", 1)
        gate.invoke("r1", "look", 2, key="", effect="read")
        await asyncio.sleep(0.1)
        gate.wire.cut()
        await asyncio.sleep(0.1)
        release.set()
        hello = await gate.hello()
        answers = {unit["unit"]: unit["answer"]["value"] for unit in hello["units"]}
        assert answers == {"u1": 1, "r1": 2}
        gate.wire.cut()
        assert [unit["unit"] for unit in (await gate.hello())["units"]] == ["u1"]


@virtual
async def test_an_answer_between_hello_and_welcome_is_sent_after_the_welcome() -> None:
    """4.5: reported as running, finished before the welcome: the answer follows as a message."""
    release = asyncio.Event()
    gate = ScriptedGate()
    async with hosted(agent_of(release), gate):
        await gate.hello()
        gate.invoke("u1", "work", 1)
        await asyncio.sleep(0.1)
        gate.answers_hello = False
        gate.wire.cut()
        hello = await gate.hello()
        assert "answer" not in hello["units"][0]
        release.set()
        await asyncio.sleep(0.1)
        gate.send({"id": "hello", "result": gate.welcome})
        assert (await gate.answer("u1")).value == 1


@virtual
async def test_units_the_gate_does_not_know_are_stopped_and_forgotten() -> None:
    """4.5: `unknown_units` are interrupted, their answers dropped, and a new unit of the key waits for the old run."""
    gate = ScriptedGate()
    async with hosted(agent_of(asyncio.Event()), gate) as agent:
        await gate.hello()
        gate.invoke("u1", "work", 1)
        await asyncio.sleep(0.1)
        gate.welcome = gate.welcome.__class__(session="s", gateway="g", gateway_epoch=2, unknown_units=("u1",))
        gate.wire.cut()
        await gate.hello()
        await asyncio.sleep(1)
        assert gate.silent()
        assert agent.link.in_hand == (0, 0)


@virtual
async def test_unacknowledged_answers_are_sent_again_on_a_live_link() -> None:
    """C7: both sides converge although the gate lost an answer: it comes again with a later beat, until the ack."""
    gate = ScriptedGate()
    async with hosted(agent_of(), gate):
        await gate.hello()
        gate.invoke("u1", "work", 1)
        await gate.answer("u1")
        assert (await gate.answer("u1")).seq == 1
        assert asyncio.get_running_loop().time() == pytest.approx(11, abs=1.1)
        gate.ack(1)
        await asyncio.sleep(60)
        assert gate.silent()
