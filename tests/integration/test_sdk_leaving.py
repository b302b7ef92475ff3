"""How an agent leaves: it says so, finishes what is in hand, and is gone."""

from __future__ import annotations

import asyncio

from agentgate.sdk.calling import exchange
from tests.integration.sdk_gate import READ, ScriptedGate, agent_of, client, hosted, virtual


@virtual
async def test_leaving_finishes_what_is_in_hand() -> None:
    """A6, F87: drain is said, nothing new is taken, what runs is finished and acknowledged, then the link closes."""
    release = asyncio.Event()
    gate = ScriptedGate()
    async with hosted(agent_of(release), gate) as agent:
        await gate.hello()
        gate.invoke("u1", "work", 1)
        await asyncio.sleep(0.1)
        agent.link.drain("stopping")
        assert (await gate.expect("drain"))["params"] == {"reason": "stopping"}
        gate.invoke("u2", "work", 2)
        refused = (await gate.answer("u2")).error
        assert refused is not None
        assert (refused.code, refused.fault, refused.sent) == ("overloaded", "throttled", False)
        release.set()
        await gate.answer("u1")
        await asyncio.sleep(1)
        assert not agent.running.done()  # the answer may not be on disk yet
        gate.ack(1)
        await asyncio.sleep(0.1)
        assert agent.running.done()
        assert gate.wire.closed_by_sdk


@virtual
async def test_leaving_survives_a_lost_connection() -> None:
    """A6: the gate of the next connection hears of the leaving as well."""
    release = asyncio.Event()
    gate = ScriptedGate()
    async with hosted(agent_of(release), gate) as agent:
        await gate.hello()
        gate.invoke("u1", "work", 1)
        await asyncio.sleep(0.1)
        gate.wire.cut()
        agent.link.drain("stopping")
        await gate.hello()
        await gate.expect("drain")
        release.set()
        await gate.answer("u1")
        gate.ack(1)
        await asyncio.sleep(0.1)
        assert agent.running.done()


@virtual
async def test_leaving_with_nothing_in_hand_does_not_wait_for_a_gate() -> None:
    """Ctrl-C without a gate ends at once."""
    gate = ScriptedGate()
    gate.listens = False
    async with hosted(agent_of(), gate) as agent:
        await asyncio.sleep(3)
        agent.link.drain("stopping")
        await asyncio.sleep(0.1)
        assert agent.running.done()


@virtual
async def test_the_gate_may_ask_to_leave() -> None:
    """4.1: `drain {restart}` makes the agent finish and leave; the host knows that it is to start again."""
    gate = ScriptedGate()
    async with hosted(agent_of(), gate) as agent:
        await gate.hello()
        gate.drain(restart=True)
        await gate.expect("drain")
        await asyncio.sleep(0.1)
        assert agent.running.done()
        assert agent.host.restart_wanted


@virtual
async def test_closing_ends_the_calls_that_wait() -> None:
    """A link that ends leaves no caller hanging."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run())
        await gate.hello()
        waiting = group.create_task(exchange(link, READ, None))
        await gate.call()
        link.close()
        assert (await waiting).code == "cancelled"
