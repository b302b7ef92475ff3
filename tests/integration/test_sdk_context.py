"""What a handler is given: what it knows of its unit, the calls it makes, the notes it leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context, OutcomeUnknown, skill
from agentgate.model import Outcome, failure
from tests.integration.sdk_gate import UNSENDABLE, Order, Receipt, ScriptedGate, answer_of, hosted, virtual

SHOWN = {
    "unit": "u1",
    "chain": "",
    "key": "test:work:u1:run",
    "caller": "test",
    "attempt": 2,
    "task_type": "work",
    "business_key": "o1",
    "action": "run",
    "deadline": 5.0,
    "expired": False,
}


@virtual
async def test_the_context_knows_its_unit() -> None:
    """EXPERIENCE: unit, chain, key, caller, attempt, deadline, and what was asked."""
    seen: dict[str, Any] = {}

    async def work(payload: Any, ctx: Context) -> None:
        names = (
            "unit",
            "chain",
            "key",
            "caller",
            "attempt",
            "task_type",
            "business_key",
            "action",
            "deadline",
            "expired",
        )
        seen.update({name: getattr(ctx, name) for name in names})

    trace = "0af7651916cd43dd8448eb211c80319c"
    await answer_of(
        work, traceparent=f"00-{trace}-b7ad6b7169203331-01", attempt=2, business_key="o1", remaining_ms=5000
    )
    assert seen == {
        "unit": "u1",
        "chain": trace,
        "key": "test:work:u1:run",
        "caller": "test",
        "attempt": 2,
        "task_type": "work",
        "business_key": "o1",
        "action": "run",
        "deadline": 5.0,
        "expired": False,
    }


@virtual
async def test_notes_leave_before_the_answer() -> None:
    """4.5: progress and result leave in one order."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> None:
        ctx.progress("1 of 2")
        await asyncio.sleep(1)
        ctx.progress("2 of 2 " + "x" * 500)

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work")
        assert (await gate.expect("progress"))["params"] == {"unit": "u1", "note": "1 of 2"}
        assert len((await gate.expect("progress"))["params"]["note"]) == 200
        await gate.answer("u1")


@virtual
async def test_a_context_makes_no_calls_after_its_unit() -> None:
    """F03: a task that a handler left behind may not act in the name of a unit that has ended."""
    gate = ScriptedGate()
    agent = Agent("a")
    left: list[Context] = []

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> None:
        left.append(ctx)

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work")
        await gate.answer("u1")
        left[0].progress("still here")
        with pytest.raises(CallFailed) as error:
            await left[0].call("b", "t", "k")
        assert (error.value.code, error.value.sent) == ("lease_lost", False)
        await asyncio.sleep(1)
        assert gate.silent()


@virtual
async def test_calls_carry_the_token_and_every_option() -> None:
    """I1: the SDK sends the parts, the gate makes the key; the token says whose child the call is."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> Any:
        return await ctx.call(
            skill("reserve"), "reserve", "o1", Order("o1"), action="again", heavy=True, timeout=99, priority=7,
            again=True, join=False, on_disconnect="cancel", returns=Receipt,
        )  # fmt: skip

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work", token="tok", remaining_ms=5000)
        call = await gate.call()
        assert call["params"] == {
            "target": "skill:reserve",
            "task_type": "reserve",
            "business_key": "o1",
            "action": "again",
            "payload": {"id": "o1", "n": 1},
            "heavy": True,
            "timeout_ms": 5000,  # never more than the unit has left
            "priority": 7,
            "again": True,
            "join": False,
            "on_disconnect": "cancel",
            "token": "tok",
        }
        gate.settle(call, Outcome(value={"order": "o1", "shelf": "s"}))
        assert (await gate.answer("u1")).value == {"order": "o1", "shelf": "s"}


@virtual
async def test_an_answer_of_another_type_is_malformed() -> None:
    """`returns=`: the answer is checked here too, and the sentence says where it does not fit."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> str:
        try:
            await ctx.call("b", "t", "k", returns=Receipt)
        except CallFailed as error:
            return f"{error.code}: {error.detail}"
        return "?"

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work")
        gate.settle(await gate.call(), Outcome(value={"order": 5}))
        value = (await gate.answer("u1")).value
        assert value.startswith("malformed_output: the answer is no Receipt: Expected `str`, got `int` - at `$.order`")


@virtual
async def test_an_unknown_outcome_has_its_own_exception() -> None:
    """EXPERIENCE: `OutcomeUnknown` is the one subclass of `CallFailed`."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> str:
        try:
            await ctx.call("b", "t", "k")
        except OutcomeUnknown as error:
            return error.code
        return "?"

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work")
        gate.settle(await gate.call(), failure("outcome_unknown", sent=True))
        assert (await gate.answer("u1")).value == "outcome_unknown"


@pytest.mark.parametrize("name", UNSENDABLE)
def test_a_call_that_cannot_travel_fails_here(name: str) -> None:
    """F29: a local defect is the caller's, nothing is sent."""

    @virtual
    async def play() -> None:
        context = Context.fake({"t": 1})
        with pytest.raises(CallFailed) as error:
            await context.call("b", "t", "k", UNSENDABLE[name])
        code = "too_large" if name == "large" else "bad_request"
        assert (error.value.code, error.value.fault, error.value.sent) == (code, "caller", False)
        assert context.calls == []

    play()


@virtual
async def test_wrong_arguments_are_type_errors() -> None:
    """A call that is wrong in the program is an ordinary Python error."""
    context = Context.fake({"t": 1})
    with pytest.raises(TypeError, match="business_key must be a string, not 5"):
        await context.call("b", "t", 5)  # type: ignore[call-overload]  # the mistake under test
    with pytest.raises(TypeError, match="prio"):
        await context.call("b", "t", "k", prio=5)  # type: ignore[call-overload]  # the mistake under test
