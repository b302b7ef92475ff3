"""The link against a scripted gate, in virtual time: hello, units, beats, silence, reconnecting, broken frames."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from agentgate import Agent, Context
from agentgate.errors import LinkDown
from agentgate.model import Outcome
from agentgate.sdk.calling import exchange
from agentgate.sdk.greeting import Identity
from agentgate.sdk.link import Link
from agentgate.sdk.reconnect import ReconnectOptions
from tests.integration.sdk_gate import READ, ScriptedGate, agent_of, client, hosted, virtual


@virtual
async def test_hello_says_who_is_there() -> None:
    """4.5: the first message is a hello with name, instance, card, and nothing else is sent before the welcome."""
    gate = ScriptedGate()
    gate.answers_hello = False
    async with hosted(agent_of(), gate):
        hello = await gate.hello()
        assert (hello["agent"], hello["instance"]) == ("a", "i1")
        assert [skill["task_type"] for skill in hello["card"]["skills"]] == ["work", "look", "call"]
        await asyncio.sleep(4)
        assert len(gate.wire.sent) == 1


@virtual
async def test_a_gate_that_never_welcomes_is_left() -> None:
    """Nothing hangs: without a welcome within 5 s the connection is closed and made again."""
    gate = ScriptedGate()
    gate.answers_hello = False
    async with hosted(agent_of(), gate):
        await gate.hello()
        await gate.hello()
        assert gate.wires[0].closed_by_sdk
        assert gate.tries == pytest.approx([0.0, 5.3])


@virtual
async def test_a_unit_is_run_and_answered() -> None:
    """The response to `invoke` has the unit's id, the handler's value, and the number 1."""
    gate = ScriptedGate()
    async with hosted(agent_of(), gate):
        await gate.hello()
        gate.invoke("u1", "work", {"n": 1})
        answer = await gate.answer("u1")
        assert (answer.value, answer.error, answer.seq) == ({"n": 1}, None, 1)


@virtual
async def test_batches_are_handled_in_order_and_sent_as_one() -> None:
    """Several messages of one turn leave as one JSON-RPC batch, and an array is understood."""
    gate = ScriptedGate()
    async with hosted(agent_of(), gate):
        await gate.hello()
        await asyncio.sleep(0.1)  # the first beat has left
        params = {"task_type": "work", "caller": "c", "remaining_ms": 1000}
        gate.send(*({"id": f"u{n}", "method": "invoke", "params": params | {"key": f"k{n}"}} for n in range(3)))
        assert [(await gate.answer(f"u{n}")).seq for n in range(3)] == [1, 2, 3]
        assert [len(message) for message in gate.wire.sent if isinstance(message, list)] == [3]


@virtual
async def test_beats_come_in_time_and_tell_how_busy_it_is() -> None:
    """A8: a beat at least every `beat_ms`, with the number of units that run."""
    gate = ScriptedGate(beat_ms=500)
    async with hosted(agent_of(asyncio.Event()), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        await asyncio.sleep(5.2)
        assert len(gate.beats) == 11
        assert gate.beats[-1]["units"] == 1


@virtual
async def test_a_silent_gate_is_taken_for_dead() -> None:
    """4.5: after `silent_ms` without any message the connection is given up, and a new one resumes."""
    gate = ScriptedGate()
    async with hosted(agent_of(), gate):
        await gate.hello()
        await asyncio.sleep(30)
        assert len(gate.wires) == 1  # acks to beats are enough
        gate.wire.muted = True
        await gate.hello()
        assert gate.tries[1] == pytest.approx(28 + 6 + 0.75)  # the last beat that was answered, silence, spread


@virtual
async def test_reconnecting_goes_in_rounds_with_pauses() -> None:
    """A5: five tries 200 ms x 2^n + 0-200 ms apart, then 2-4 s of peace before every further one."""
    gate = ScriptedGate()
    gate.listens = False
    running = asyncio.get_running_loop().create_task(client(gate).run())
    await asyncio.sleep(20)
    running.cancel()
    gaps = [later - earlier for earlier, later in itertools.pairwise(gate.tries)]
    assert gaps[:7] == pytest.approx([0.3, 0.5, 0.9, 1.7, 3.0, 3.0, 3.0], abs=0.01)


@virtual
async def test_clients_of_a_gate_that_restarts_do_not_come_back_together() -> None:
    """F26: of 300 links lost in one instant, no 100 ms see more than a tenth come back."""
    gates = [ScriptedGate() for _ in range(300)]
    draws = random.Random(7)
    async with asyncio.TaskGroup() as group:
        links = [
            Link(gate.connect, Identity(agent="c", instance=str(number)), draw=draws.random)
            for number, gate in enumerate(gates)
        ]
        running = [group.create_task(link.run()) for link in links]
        await asyncio.sleep(1)
        for gate in gates:
            gate.wire.cut()
        await asyncio.sleep(3)
        buckets = [int(gate.tries[1] * 10) for gate in gates]
        assert max(buckets.count(bucket) for bucket in set(buckets)) <= 30
        for task in running:
            task.cancel()


@virtual
async def test_a_gate_that_asks_for_time_is_given_it() -> None:
    """A5: a refused hello with `retry_after_ms` is tried again after that time, and no sooner."""
    gate = ScriptedGate()
    gate.refusal = {"code": -32000, "message": "too many at once", "data": {"retry_after_ms": 7000}}
    running = asyncio.get_running_loop().create_task(client(gate).run())
    await asyncio.sleep(30)
    running.cancel()
    assert all(later - earlier >= 7 for earlier, later in itertools.pairwise(gate.tries))


@virtual
async def test_a_refusal_with_a_code_is_final() -> None:
    """A hello that the gate refuses for good ends the link with the gate's sentence; waiting calls end too."""
    gate = ScriptedGate()
    gate.refusal = {"code": -32602, "message": "the card is of `b`", "data": {"code": "forbidden"}}
    link = client(gate)
    outcomes: list[Outcome] = []
    link.start_call(READ, None, outcomes.append)
    with pytest.raises(LinkDown, match="the card is of `b`"):
        await link.run()
    link.start_call(READ, None, outcomes.append)
    assert [outcome.code for outcome in outcomes] == ["forbidden", "forbidden"]
    assert len(gate.tries) == 1


@virtual
async def test_a_refusal_without_a_code_is_not_final() -> None:
    """A gate whose store is down refuses too; that passes."""
    gate = ScriptedGate()
    gate.refusal = {"code": -32602, "message": "the store does not answer", "data": 5}
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        gate.refusal = None
        await gate.hello()
        outcome = group.create_task(exchange(link, READ, link.now() + 5))
        gate.settle(await gate.call(), Outcome(value=1))
        assert (await outcome).value == 1
        running.cancel()


@virtual
async def test_broken_frames_end_the_connection_and_nothing_else() -> None:
    """What is no JSON-RPC cannot be trusted any further: the connection is made anew and resumes."""
    gate = ScriptedGate()
    async with hosted(agent_of(asyncio.Event()), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        await asyncio.sleep(0.1)
        gate.wire.put(b'{"jsonrpc":"2.0","method":"ack","par')
        assert [unit["unit"] for unit in (await gate.hello())["units"]] == ["u1"]


@virtual
async def test_a_wrong_request_is_answered_as_one() -> None:
    """JSON-RPC: an invoke without what it needs, or a method nobody knows, gets an error and harms nobody."""
    gate = ScriptedGate()
    async with hosted(agent_of(), gate):
        await gate.hello()
        gate.send({"id": "u1", "method": "invoke", "params": {"caller": "c"}}, {"id": 7, "method": "dance"})
        gate.send({"method": "ack", "params": {"seq": "many"}}, {"method": "dance"})
        wrong, unknown = await gate._next(), await gate._next()  # noqa: SLF001 - error responses have no method
        assert (wrong["id"], wrong["error"]["code"]) == ("u1", -32602)
        assert (unknown["id"], unknown["error"]["code"]) == (7, -32601)
        gate.invoke("u2", "work", 1)
        assert (await gate.answer("u2")).value == 1


@virtual
async def test_an_invoke_to_a_client_is_refused() -> None:
    """A process without a card has no handlers and says so."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        gate.invoke("u1", "work")
        assert (await gate._next())["error"]["code"] == -32602  # noqa: SLF001 - an error response has no method
        running.cancel()


@virtual
async def test_a_slow_reader_holds_messages_back_in_order() -> None:
    """While the connection takes nothing, messages wait in order, and only the latest note of a unit."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("talk")
    async def talk(payload: Any, ctx: Context) -> int:
        gate.wire.stalled.clear()
        for number in range(1000):
            ctx.progress(f"{number} of 1000")
        return 1

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "talk")
        await asyncio.sleep(1)
        gate.wire.stalled.set()
        notes = []
        while "method" in (frame := await gate._next()):  # noqa: SLF001 - notes and the answer alike
            notes.append(frame["params"]["note"])
        assert frame["id"] == "u1"
        assert notes[-1] == "999 of 1000"
        assert len(notes) <= 2


def test_options_are_checked() -> None:
    """A time below zero is refused where it is written."""
    with pytest.raises(ValueError, match="not negative"):
        ReconnectOptions(pause_s=-1)
