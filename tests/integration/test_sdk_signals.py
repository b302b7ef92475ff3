"""What the SDK says of signals, of waits for them, and of what its units stand still for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context, SyncContext
from agentgate.errors import ConfigError
from agentgate.model import Outcome, failure
from agentgate.sdk.handle import FIRST_MAX
from tests.integration.sdk_gate import UNSENDABLE, ScriptedGate, hosted, virtual

Work = Callable[[Any, Context], Awaitable[Any]]


def agent_of(work: Work) -> Agent:
    agent = Agent("a")
    agent.handles("work")(work)
    return agent


def told(frame: dict[str, Any]) -> dict[str, Any]:
    """Its parameters, without the token."""
    return {name: value for name, value in frame["params"].items() if name != "token"}


@virtual
async def test_waits_and_signals_say_what_they_are_about() -> None:
    """4.4: by default the unit's own business key; the time-out is cut at the unit's deadline."""

    async def work(payload: Any, ctx: Context) -> Any:
        await ctx.signal("sent", value={"n": 1})
        await ctx.signal("sent", about="", to="b")
        await ctx.wait_for("done", from_agent="b", timeout=100)
        return await ctx.wait_for("done", about="o2")

    gate = ScriptedGate()
    async with hosted(agent_of(work), gate):
        await gate.hello()
        gate.invoke("u1", "work", business_key="o1", remaining_ms=5000, token="t")
        said = []
        for method in ("signal", "signal", "wait_for", "wait_for"):
            frame = await gate.expect(method)
            assert frame["params"]["token"] == "t"
            said.append(told(frame))
            gate.settle(frame, Outcome(value=method))
        assert said == [
            {"name": "sent", "about": "o1", "value": {"n": 1}},
            {"name": "sent", "value": None, "to": "b"},
            {"name": "done", "about": "o1", "from_agent": "b", "timeout_ms": 5000},
            {"name": "done", "about": "o2"},
        ]
        assert (await gate.answer("u1")).value == "wait_for"


@virtual
async def test_everything_open_is_sent_again_over_a_new_connection() -> None:
    """4.5: the same ids, what they name before the `wait` that names it, waits with the time that is left."""

    async def work(payload: Any, ctx: Context) -> Any:
        handle = ctx.start("b", "t", "k1")
        await asyncio.sleep(0.1)
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.signal("sent"))
            return await ctx.first(handle, ctx.wait_for("done", timeout=10))

    gate = ScriptedGate()
    async with hosted(agent_of(work), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        first = [await gate.expect(method) for method in ("call", "wait_for", "wait", "signal")]
        call, waited, wait, signal = first
        assert call["params"]["awaited"] is waited["params"]["awaited"] is False
        assert wait["params"]["any_of"] == [call["id"], waited["id"]]
        await asyncio.sleep(1)
        gate.wire.cut()
        assert (await gate.hello())["calls"] == [call["id"], waited["id"], signal["id"]]
        again = [await gate.expect(method) for method in ("call", "wait_for", "signal", "wait")]
        assert [frame.get("id") for frame in again] == [call["id"], waited["id"], signal["id"], None]
        assert again[1]["params"]["age_ms"] >= 1000
        assert again[1]["params"]["timeout_ms"] == 10_000 - again[1]["params"]["age_ms"]
        assert again[2]["params"] == signal["params"]
        assert again[3] == wait
        gate.settle(signal, Outcome())
        gate.settle(waited, Outcome(value="news"))
        assert (await gate.expect("cancel"))["params"] == {"id": call["id"]}
        assert (await gate.answer("u1")).value == "news"
        gate.wire.cut()
        assert "calls" not in await gate.hello()
        assert gate.silent()


@virtual
async def test_a_unit_that_goes_on_early_says_so() -> None:
    """4.4: its own time-out ends the wait and not the call; when the handler ends, the call goes."""

    async def work(payload: Any, ctx: Context) -> str:
        handle = ctx.start("b", "t", "k1")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await handle
        return "without"

    gate = ScriptedGate()
    async with hosted(agent_of(work), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        call, wait = await gate.expect("call"), await gate.expect("wait")
        assert (await gate.expect("unwait"))["params"] == {"id": wait["params"]["id"]}
        assert (await gate.expect("cancel"))["params"] == {"id": call["id"]}
        assert (await gate.answer("u1")).value == "without"


@virtual
async def test_the_first_error_is_an_end_as_well() -> None:
    """`first`: the first to end decides, a value or not."""

    async def work(payload: Any, ctx: Context) -> None:
        await ctx.first(ctx.call("b", "t", "k1"), ctx.wait_for("done"))

    gate = ScriptedGate()
    async with hosted(agent_of(work), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        call, waited = await gate.expect("call"), await gate.expect("wait_for")
        await gate.expect("wait")
        gate.settle(waited, failure("needs_human", sent=True, detail="nobody said it"))
        assert (await gate.expect("cancel"))["params"] == {"id": call["id"]}
        error = (await gate.answer("u1")).error
        assert error is not None
        assert (error.code, error.detail, error.sent) == ("needs_human", "nobody said it", True)


@virtual
async def test_a_wait_without_a_link_ends_by_itself() -> None:
    """4.5: nothing hangs; the gate's word comes first wherever there is one."""

    async def work(payload: Any, ctx: Context) -> str:
        with pytest.raises(CallFailed) as failed:
            await ctx.wait_for("done", timeout=2)
        return failed.value.code

    gate = ScriptedGate()
    async with hosted(agent_of(work), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        await gate.expect("wait_for")
        gate.listens = False
        gate.wire.cut()
        await asyncio.sleep(3)
        gate.listens = True
        assert (await gate.hello())["units"][0]["answer"]["value"] == "deadline_exceeded"


@virtual
async def test_what_cannot_be_sent_is_refused_at_once() -> None:
    """F26: one clear error, before anything leaves; the gate hears nothing."""
    codes: list[str] = []

    async def work(payload: Any, ctx: Context) -> None:
        for unsendable in UNSENDABLE.values():
            with pytest.raises(CallFailed) as refused:
                await ctx.signal("sent", value=unsendable)
            codes.append(refused.value.code)
        with pytest.raises(CallFailed) as refused:
            await ctx.wait_for("a\0b")
        codes.append(refused.value.code)
        wrong: Any = 7
        for broken in (ctx.signal(wrong), ctx.wait_for("n", about=wrong)):
            with pytest.raises(TypeError, match="must be a string, not 7"):
                await broken
        with pytest.raises(ValueError, match="waits for 1 to 64 things, not for 0"):
            await ctx.first()
        many = ctx.start("b", "t", "k")
        with pytest.raises(ValueError, match="not for 65"):
            await ctx.first(*[many] * (FIRST_MAX + 1))
        stray: Any = asyncio.sleep(0)
        with pytest.raises(TypeError, match="first\\(\\) takes calls, waits and handles"):
            await ctx.first(many, stray)
        stray.close()

    gate = ScriptedGate()
    async with hosted(agent_of(work), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        await gate.expect("call")
        await gate.expect("cancel")
        assert (await gate.answer("u1")).error is None
        assert set(codes) <= {"bad_request", "too_large"}
        assert len(codes) == len(UNSENDABLE) + 1


@virtual
async def test_a_unit_that_has_ended_waits_and_signals_no_more() -> None:
    """F03: a task that a handler left behind may not speak in the name of its unit."""
    left: list[Context] = []

    async def work(payload: Any, ctx: Context) -> None:
        left.append(ctx)

    gate = ScriptedGate()
    async with hosted(agent_of(work), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        await gate.answer("u1")
        for late in (left[0].wait_for("n"), left[0].signal("n"), left[0].first(left[0].wait_for("n"))):
            with pytest.raises(CallFailed) as refused:
                await late
            assert refused.value.code == "lease_lost"


def test_fake_contexts_have_signals() -> None:
    """EXPERIENCE: a handler is tested without a gate; news by the name of the signal, none is `needs_human`."""
    ctx = Context.fake({"done": {"n": 1}, "t": 2}, business_key="o1")

    async def work() -> list[Any]:
        await ctx.signal("sent", value={"n": 1}, to="b")
        values = [await ctx.wait_for("done"), await ctx.start("b", "t", "k")]
        values.append(await ctx.first(ctx.call("b", "t", "k"), ctx.wait_for("never")))
        with pytest.raises(CallFailed) as failed:
            await ctx.wait_for("never")
        return [*values, failed.value.code]

    assert asyncio.run(work()) == [{"n": 1}, 2, 2, "needs_human"]
    assert [tuple(signal) for signal in ctx.signals] == [("sent", "o1", {"n": 1}, "b")]
    sync = SyncContext.fake({"done": lambda wait: wait.about, "t": 2}, business_key="o1")
    sync.signal("sent")
    handle = sync.start("b", "t", "k", returns=int)
    assert (sync.wait_for("done"), handle.result(), sync.first(handle)) == ("o1", 2, 2)
    assert [signal.name for signal in sync.signals] == ["sent"]


@pytest.mark.parametrize("promises", ["finished", ["a", " "]])
def test_promises_are_a_list_of_names(promises: Any) -> None:
    """4.4: a single string would be one promise for every letter."""
    with pytest.raises(ConfigError, match="promises is a list of names of signals"):
        Agent("a").handles("t", promises=promises)


@virtual
async def test_no_receiver_is_everybody() -> None:
    """I3: `to=None` and `from_agent=None` name nobody in particular; a value that is too large names its setting."""
    context = Context.fake({"news": 1})
    await context.signal("news", to=None)
    assert await context.wait_for("news", from_agent=None) == 1
    assert context.signals[0].to == ""
    with pytest.raises(CallFailed, match=r"the value of signal `news`: .*`signals.value_bytes_max`") as refused:
        await context.signal("news", value="x" * 300_000)
    assert refused.value.code == "too_large"
