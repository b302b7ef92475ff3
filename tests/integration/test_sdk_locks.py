"""Locks on the SDK's side of the link: what is sent, what is reported, what gets lost on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context
from agentgate.model import failure
from agentgate.model.link import Answer, LockGrant, LockLostParams
from agentgate.model.outcome import Outcome
from tests.integration.sdk_gate import ScriptedGate, answer_of, hosted, virtual

GRANT = Outcome(value=LockGrant(epoch=7, lease_ms=30_000))


def locking_agent(release: asyncio.Event, **options: Any) -> Agent:
    """Handles `work`, which holds a lock until it is told to go on."""
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> Any:
        async with ctx.lock("b", "a", **options) as held:
            await release.wait()
            return [held.epoch, held.lost]

    @agent.handles("look", effect="read")
    async def look(payload: Any, ctx: Context) -> None:
        async with ctx.lock("b", "a", **options):
            await release.wait()

    return agent


@virtual
async def test_a_lock_is_asked_for_and_given_back() -> None:
    """4.5: `lock` is a request under an id of its own with the token of the unit, `unlock` names that id."""
    gate, release = ScriptedGate(), asyncio.Event()
    async with hosted(locking_agent(release, mode="shared", timeout=4), gate):
        await gate.hello()
        gate.invoke("u1", "work", token="tok")
        asked = await gate.expect("lock")
        assert asked["params"] == {"names": ["b", "a"], "mode": "shared", "timeout_ms": 4000, "token": "tok"}
        gate.settle(asked, GRANT)
        release.set()
        assert (await gate.expect("unlock"))["params"] == {"id": asked["id"]}
        assert (await gate.answer("u1")).value == [7, False]


@virtual
async def test_a_request_survives_its_connection() -> None:
    """What waits is named in the next hello and sent again under its id, with the time that is left."""
    gate, release = ScriptedGate(), asyncio.Event()
    async with hosted(locking_agent(release, timeout=20), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        asked = await gate.expect("lock")
        gate.wire.cut()
        hello = await gate.hello()
        assert hello["calls"] == [asked["id"]]
        assert "locks" not in hello
        again = await gate.expect("lock")
        assert again["id"] == asked["id"]
        assert again["params"]["timeout_ms"] == 20_000 - again["params"]["age_ms"]


@virtual
async def test_what_is_held_is_reported_and_may_be_lost() -> None:
    """4.4: a hello names the locks that are held, with epoch and unit; the welcome says which are not any more."""
    gate, release = ScriptedGate(), asyncio.Event()
    async with hosted(locking_agent(release), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        asked = await gate.expect("lock")
        gate.settle(asked, GRANT)
        await asyncio.sleep(0.1)
        gate.wire.cut()
        report = {"id": asked["id"], "names": ["b", "a"], "epoch": 7, "unit": "u1"}
        assert (await gate.hello())["locks"] == [report]
        await asyncio.sleep(0.1)
        gate.welcome = type(gate.welcome)(session="s", gateway="g", gateway_epoch=2, lost_locks=(asked["id"],))
        gate.wire.cut()
        assert (await gate.hello())["locks"] == [report]
        await asyncio.sleep(0.1)
        release.set()
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert "lease_lost" in answer.error.detail
        assert "'b', 'a'" in answer.error.detail
        gate.wire.cut()
        assert "locks" not in await gate.hello()


@virtual
async def test_the_news_of_a_loss_reaches_the_holder() -> None:
    """`lock_lost` names the request; one that is not held any more is nothing to anybody."""
    gate, release = ScriptedGate(), asyncio.Event()
    async with hosted(locking_agent(release), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        asked = await gate.expect("lock")
        gate.settle(asked, GRANT)
        for lock_id in ("unheard-of", asked["id"], asked["id"]):
            gate.send({"method": "lock_lost", "params": LockLostParams(id=lock_id, reason="test")})
        await asyncio.sleep(0.1)
        release.set()
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert "lease_lost" in answer.error.detail


@virtual
async def test_an_unlock_without_a_connection_is_said_by_silence() -> None:
    """What was given back while there was no link is not in the next hello: the gate frees it."""
    gate, release = ScriptedGate(), asyncio.Event()
    async with hosted(locking_agent(release), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        gate.settle(await gate.expect("lock"), GRANT)
        await asyncio.sleep(0.1)
        gate.listens = False
        gate.wire.cut()
        await asyncio.sleep(0.1)
        release.set()
        await asyncio.sleep(0.1)
        gate.listens = True
        hello = await gate.hello()
        assert "locks" not in hello
        assert [unit["answer"]["value"] for unit in hello["units"]] == [[7, False]]


@virtual
async def test_who_is_interrupted_gives_back_or_gives_up() -> None:
    """D5: a stop while waiting cancels the request, a stop while holding gives back."""
    gate = ScriptedGate()
    async with hosted(locking_agent(asyncio.Event()), gate):
        await gate.hello()
        gate.invoke("u1", "look", effect="read")
        waiting = await gate.expect("lock")
        gate.stop("u1", "cancel")
        assert (await gate.expect("cancel"))["params"] == {"id": waiting["id"]}
        await gate.answer("u1")
        gate.invoke("u2", "look", effect="read")
        held = await gate.expect("lock")
        gate.settle(held, GRANT)
        gate.stop("u2", "cancel")
        assert (await gate.expect("unlock"))["params"] == {"id": held["id"]}
        await gate.answer("u2")


@virtual
async def test_nothing_hangs_when_the_gate_says_nothing() -> None:
    """A request ends a moment after its time; a grant that may be on the way is given back."""
    gate = ScriptedGate()
    async with hosted(locking_agent(asyncio.Event(), timeout=2), gate):
        await gate.hello()
        gate.invoke("u1", "work")
        asked = await gate.expect("lock")
        began = asyncio.get_running_loop().time()
        assert (await gate.expect("cancel"))["params"] == {"id": asked["id"]}
        assert asyncio.get_running_loop().time() - began < 3.5
        answer = await gate.answer("u1")
        assert answer.error is not None
        assert "deadline_exceeded" in answer.error.detail


@pytest.mark.parametrize(
    ("outcome", "code"), [(failure("deadlock"), "deadlock"), (Outcome(value="yes"), "internal"), (GRANT, "")]
)
@virtual
async def test_a_refusal_is_a_failed_call(outcome: Outcome, code: str) -> None:
    """Whatever the gate says instead of a grant, the handler sees `CallFailed` with its code."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> str:
        try:
            async with ctx.lock("a"):
                return ""
        except CallFailed as failed:
            return failed.code

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work")
        gate.settle(await gate.expect("lock"), outcome)
        if not code:
            await gate.expect("unlock")
        assert (await gate.answer("u1")).value == code


@virtual
async def test_a_lock_that_was_never_given_back_ends_with_its_unit() -> None:
    """A handler that forgets a lock of its message leaves nothing in the next hello, but one of its session."""
    gate = ScriptedGate()
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any, ctx: Context) -> None:
        await ctx.lock("a").acquire()
        await ctx.lock("b", scope="session").acquire()

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work")
        for _ in range(2):
            gate.settle(await gate.expect("lock"), GRANT)
        await gate.answer("u1")
        gate.wire.cut()
        assert [lock["names"] for lock in (await gate.hello())["locks"]] == [["b"]]


@virtual
async def test_a_unit_that_is_over_takes_no_locks() -> None:
    """DESIGN 4.3: after its end, and after its deadline, a context asks for nothing."""
    kept: list[Context] = []

    async def work(payload: Any, ctx: Context) -> None:
        kept.append(ctx)

    answer = await answer_of(work)
    assert isinstance(answer, Answer)
    with pytest.raises(CallFailed, match="lease_lost"):
        kept[0].lock("a")


@pytest.mark.filterwarnings("ignore:ctx.lock was neither")
def test_an_async_handler_is_told_to_wait_for_locks() -> None:
    """I3: `with` would block the loop; the error says what to write."""
    with pytest.raises(TypeError, match="use `async with"), Context.fake().lock("stock"):
        pass


def forget(_: object) -> None:
    """As a line that has no `await`."""


def test_a_lock_that_nobody_takes_is_complained_of() -> None:
    """I3: as Python complains of a coroutine that nobody awaits."""
    with pytest.warns(RuntimeWarning, match="the lock 'stock' is not held"):
        Context.fake().lock("stock")
    with pytest.warns(RuntimeWarning, match="coroutine 'ctx.wait_for' was never awaited"):
        forget(Context.fake().wait_for("news"))
