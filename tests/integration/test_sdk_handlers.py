"""Handlers on the link: every end has its answer, stops and deadlines reach them, the worker lives on."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context, Rejected, TryLater
from tests.integration.sdk_gate import UNSENDABLE, Order, Receipt, ScriptedGate, answer_of, hosted, virtual


class Silent(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot say")


def raises(error: BaseException) -> Any:
    async def work(payload: Any) -> None:
        raise error

    return work


def returns(value: Any) -> Any:
    async def work(payload: Any) -> Any:
        return value

    return work


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Rejected("no"), "rejected"),
        (TryLater("soon", after=1), "overloaded"),
        (ValueError("broken"), "handler_error"),
        (Silent(), "handler_error"),
        (ValueError("\ud800\x00" + "x" * 10_000), "handler_error"),
        (SystemExit(3), "handler_error"),
        (GeneratorExit(), "handler_error"),
        (asyncio.CancelledError(), "handler_error"),
        (BaseExceptionGroup("both", [SystemExit(1), ValueError()]), "handler_error"),
        (CallFailed(code="overloaded", fault="throttled", sent=False), "handler_error"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_handler_raises_is_an_answer(error: BaseException, code: str) -> None:
    """Kind 13: the unit is answered once, with a readable error, and the worker lives on."""
    # What is raised here is logged as it is; half a character in a captured log is more than a parallel run can carry.
    logging.getLogger("agentgate").setLevel(logging.CRITICAL)

    @virtual
    async def play() -> None:
        answer = await answer_of(raises(error))
        assert answer.error is not None
        assert answer.error.code == code
        assert len(answer.error.detail) <= 2000

    play()


@pytest.mark.parametrize("value", UNSENDABLE.values(), ids=UNSENDABLE.keys())
def test_whatever_a_handler_returns_is_an_answer(value: Any) -> None:
    """Kind 13: a result that cannot travel is `malformed_output` with a sentence, and the worker lives on."""

    @virtual
    async def play() -> None:
        answer = await answer_of(returns(value))
        assert answer.error is not None
        assert (answer.error.code, answer.error.fault, answer.error.sent) == ("malformed_output", "malformed", True)
        assert answer.error.detail

    play()


@virtual
async def test_handlers_are_typed_in_and_out() -> None:
    """EXPERIENCE: the payload arrives as the declared type, the result leaves as JSON."""

    async def confirm(order: Order, ctx: Context) -> Receipt:
        assert isinstance(order, Order)
        return Receipt(order.id, f"shelf {order.n}")

    assert (await answer_of(confirm, {"id": "o1"})).value == {"order": "o1", "shelf": "shelf 1"}


@virtual
async def test_a_payload_that_does_not_fit_never_reaches_the_handler() -> None:
    """F29: wrong input is the caller's fault, nothing was run, and the sentence says where."""
    runs = []

    async def confirm(order: Order) -> None:
        runs.append(order)

    answer = await answer_of(confirm, {"id": 5})
    assert answer.error is not None
    assert (answer.error.code, answer.error.fault, answer.error.sent) == ("bad_request", "caller", False)
    assert "at `$.id`" in answer.error.detail
    assert runs == []


@virtual
async def test_a_result_that_does_not_fit_says_where() -> None:
    """B4: output that fails the declared type is malformed, not a crash."""

    async def confirm(order: Order) -> Receipt:
        return {"order": order.id}  # type: ignore[return-value]  # the mistake under test

    answer = await answer_of(confirm, {"id": "o1"})
    assert answer.error is not None
    assert answer.error.code == "malformed_output"
    assert "result of `work`: Object missing required field `shelf`" in answer.error.detail


@virtual
async def test_a_task_type_without_a_handler_is_no_route() -> None:
    """A gate with an old card asks for something unknown: nothing happened."""
    gate = ScriptedGate()
    async with hosted(Agent("a"), gate):
        await gate.hello()
        gate.invoke("u1", "dance")
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert (answer.error.code, answer.error.sent) == ("no_route", False)


@virtual
async def test_expired_work_is_not_begun() -> None:
    """DESIGN 4.3: what arrives after its deadline is answered without running."""
    runs = []

    async def work(payload: Any) -> None:
        runs.append(payload)

    answer = await answer_of(work, remaining_ms=0)
    assert answer.error is not None
    assert (answer.error.code, answer.error.sent, runs) == ("deadline_exceeded", False, [])


@virtual
async def test_a_handler_error_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """The person who runs the agent sees the traceback of what a handler raised, once."""
    await answer_of(raises(ValueError("broken")))
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert "work" in record.getMessage()


@virtual
async def test_stop_expire_is_told_and_the_answer_still_counts() -> None:
    """DESIGN 4.1: a write is told at its deadline (`ctx.expired`), may finish, and begins no child call."""
    gate = ScriptedGate()
    agent = Agent("a")
    seen = []

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> str:
        for _ in range(100):
            await asyncio.sleep(0.1)
            if ctx.expired:
                break
        try:
            await ctx.call("b", "t", "k")
        except CallFailed as error:
            seen.append((error.code, error.sent))
        return "done late"

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work", remaining_ms=5000)
        assert (await gate.answer("u1")).value == "done late"
        assert seen == [("deadline_exceeded", False)]
        gate.invoke("u2", "work", remaining_ms=60_000)
        await asyncio.sleep(1)
        gate.stop("u2", "expire")
        assert (await gate.answer("u2")).value == "done late"
        assert seen == [("deadline_exceeded", False)] * 2


@virtual
async def test_stop_cancel_interrupts_the_handler_and_its_calls() -> None:
    """F57: cancel reaches the handler where it waits, the child call is cancelled too, clean-up runs."""
    gate = ScriptedGate()
    agent = Agent("a")
    cleaned = []

    @agent.handles("work", effect="read")
    async def work(payload: Any, ctx: Context) -> None:
        try:
            await ctx.call("b", "t", effect="read")
        finally:
            cleaned.append(ctx.expired)

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work", effect="read", key="")
        call = await gate.call()
        gate.stop("u1", "cancel")
        assert (await gate.expect("cancel"))["params"]["id"] == call["id"]
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert (answer.error.code, answer.error.fault, answer.error.sent) == ("cancelled", "cancelled", True)
        assert cleaned == [True]


@virtual
async def test_stop_in_the_same_turn_as_invoke_leaves_no_unit_without_an_answer() -> None:
    """Never a lost answer: a handler cancelled before its first step says that nothing happened."""
    gate = ScriptedGate()
    agent = Agent("a")
    runs = []

    @agent.handles("work", effect="read")
    async def work(payload: Any) -> None:
        runs.append(payload)

    async with hosted(agent, gate):
        await gate.hello()
        invoke = {"task_type": "work", "caller": "c", "effect": "read", "remaining_ms": 1000}
        gate.send(
            {"id": "u1", "method": "invoke", "params": invoke},
            {"method": "stop", "params": {"unit": "u1", "kind": "cancel"}},
        )
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert (answer.error.code, answer.error.sent, runs) == ("cancelled", False, [])


@virtual
async def test_a_handler_that_ignores_its_cancellation_is_answered_by_its_end() -> None:
    """F03: what cannot be stopped finishes; its answer is the one of the unit."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any) -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(5)
        return "done anyway"

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work")
        await asyncio.sleep(1)
        gate.stop("u1", "cancel")
        assert (await gate.answer("u1")).value == "done anyway"


@virtual
async def test_a_rejoined_key_runs_once() -> None:
    """Kind 1: the gate gave a run up and asks for its key again while it still works here: one run, one effect."""
    gate = ScriptedGate()
    agent = Agent("a")
    effects = []
    release = asyncio.Event()

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> int:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue  # as a thread would: it cannot be interrupted
        effects.append(ctx.key)
        return len(effects)

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work", key="k")
        await asyncio.sleep(0.1)
        gate.welcome = type(gate.welcome)(session="s", gateway="g", gateway_epoch=2, unknown_units=("u1",))
        gate.wire.cut()
        await gate.hello()
        gate.invoke("u2", "work", key="k")
        await asyncio.sleep(0.1)
        release.set()
        assert (await gate.answer("u2")).value == 1
        assert effects == ["k"]
