"""Calls from the caller's side: resumed, cancelled, bounded, and never hanging, whatever the gate does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context
from agentgate.model import Outcome, failure
from agentgate.model.link import CallParams
from agentgate.sdk.calling import exchange
from agentgate.sdk.calls import CallLimits
from tests.integration.sdk_gate import READ, ScriptedGate, client, hosted, virtual


@virtual
async def test_pending_calls_are_sent_again_under_their_ids_with_less_time() -> None:
    """4.5: resumption, not retry: the same call id, listed in hello, and only the time that is left."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        params = CallParams(target="b", task_type="t", effect="read", timeout_ms=20_000)
        waiting = group.create_task(exchange(link, params, link.now() + 20))
        first = await gate.call()
        await asyncio.sleep(1)
        gate.wire.cut()
        hello = await gate.hello()
        assert hello["calls"] == [first["id"]]
        second = await gate.call()
        assert second["id"] == first["id"]
        assert second["params"]["timeout_ms"] == pytest.approx(20_000 - 1_750, abs=5)
        assert second["params"]["age_ms"] == pytest.approx(1_750, abs=5)
        gate.settle(second, Outcome(value="late"))
        gate.settle(second, Outcome(value="doubled"))
        assert (await waiting).value == "late"
        running.cancel()


@virtual
async def test_a_call_ends_a_little_after_its_deadline_when_the_gate_is_silent() -> None:
    """F56, B7: the gate's word normally comes first; without it the call ends by itself, and says it was sent."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        outcome = await exchange(link, READ, link.now() + 5)
        assert link.now() == pytest.approx(5.25)
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.sent) == ("deadline_exceeded", True)
        running.cancel()


@virtual
async def test_a_call_without_a_link_waits_for_one_until_its_deadline() -> None:
    """Never a hang: no connection for the whole time means deadline_exceeded, not sent."""
    gate = ScriptedGate()
    gate.listens = False
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        outcome = await exchange(link, READ, link.now() + 5)
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.sent) == ("deadline_exceeded", False)
        assert "no link" in outcome.error.detail
        running.cancel()


@virtual
async def test_a_call_without_a_deadline_outlives_a_short_outage_only() -> None:
    """Without a timeout the gate decides; with no gate for 30 s the call ends all the same."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        patient = group.create_task(exchange(link, READ, None))
        await gate.call()
        await asyncio.sleep(100)
        gate.wire.cut()
        await gate.hello()
        await gate.call()
        assert not patient.done()
        gate.listens = False
        gate.wire.cut()
        gone_at = link.now()
        outcome = await patient
        assert outcome.code == "deadline_exceeded"
        assert 30 <= link.now() - gone_at <= 41
        running.cancel()


@virtual
async def test_cancelling_a_call_tells_the_gate_and_raises() -> None:
    """F19, F57: cancellation is not an outcome; the gate is told, and a late outcome changes nothing."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        waiting = group.create_task(exchange(link, READ, link.now() + 5))
        call = await gate.call()
        waiting.cancel()
        assert (await gate.expect("cancel"))["params"] == {"id": call["id"]}
        gate.settle(call, Outcome(value=1))
        await asyncio.sleep(1)
        assert waiting.cancelled()
        running.cancel()


@virtual
async def test_a_result_in_the_same_turn_does_not_swallow_the_cancellation() -> None:
    """F20: the outcome arrives, and before the caller wakes it is cancelled: cancelled it is, fifty times of fifty."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        for _ in range(50):
            waiting = asyncio.get_running_loop().create_task(exchange(link, READ, link.now() + 5))
            call = await gate.call()
            link._calls.settle(call["id"], Outcome(value=1))  # noqa: SLF001 - the very moment before waking
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        running.cancel()


@virtual
async def test_more_open_calls_than_the_bound_are_refused_at_once() -> None:
    """B14: a caller that does not wait is told so; nothing is sent."""
    gate = ScriptedGate()
    link = client(gate, calls=CallLimits(open_max=2))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        for _ in range(2):
            group.create_task(exchange(link, READ, link.now() + 5))
            await gate.call()
        refused = await exchange(link, READ, link.now() + 5)
        assert (refused.code, refused.status) == ("overloaded", "refused")
        assert gate.silent()
        running.cancel()


@virtual
async def test_a_call_that_breaks_the_protocol_fails_alone() -> None:
    """A JSON-RPC error to a call is that call's outcome."""
    gate = ScriptedGate()
    link = client(gate)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(link.run())
        await gate.hello()
        waiting = group.create_task(exchange(link, READ, link.now() + 5))
        call = await gate.call()
        gate.send({"id": call["id"], "error": {"code": -32602, "message": "no"}})
        assert (await waiting).code == "internal"
        running.cancel()


@virtual
async def test_the_welcome_limits_payloads() -> None:
    """The gate says how large a payload may be; a larger one is refused here, with the size."""
    gate = ScriptedGate(payload_bytes_max=100)
    caught: list[CallFailed] = []
    agent = Agent("a")

    @agent.handles("grow")
    async def grow(payload: Any, ctx: Context) -> str:
        try:
            await ctx.call("b", "t", "k", "x" * 200)
        except CallFailed as error:
            caught.append(error)
        return "y" * 200

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "grow")
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert answer.error.code == "malformed_output"
        assert "202 bytes of JSON, at most 100" in answer.error.detail
        assert [(error.code, error.sent) for error in caught] == [("too_large", False)]


@virtual
async def test_a_failed_call_says_what_the_gate_said() -> None:
    """EXPERIENCE: code, fault, sent, retry, advice and detail of the gate reach the caller."""
    gate = ScriptedGate()
    caught: list[CallFailed] = []
    agent = Agent("a")

    @agent.handles("try")
    async def attempt(payload: Any, ctx: Context) -> None:
        try:
            await ctx.call("b", "t", "k")
        except CallFailed as error:
            caught.append(error)

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "try")
        gate.settle(await gate.call(), failure("breaker_open", retry_after_s=2.5, detail="5 in a row"))
        await gate.answer("u1")
    (error,) = caught
    said = (error.code, error.fault, error.sent, error.retry, error.retry_after_ms, error.detail)
    assert said == ("breaker_open", "refused", False, "never", 2500, "5 in a row")
    assert "Do not retry" in error.advice
