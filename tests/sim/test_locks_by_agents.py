"""Locks as agents use them: real handlers, real links, a real gate, without sockets."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context, SyncContext
from agentgate.config import Settings
from agentgate.core.locks import LockOptions
from agentgate.sdk.locks import Held
from agentgate.testing import run_virtual
from agentgate.testing.local_gate import LocalGate, local_gate

ORDERS = 40


class Till:
    """What the locks protect: it notices whoever works on it beside another."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.turns = 0
        self.epochs: list[int] = []

    def enter(self, *names: str) -> None:
        for name in names:
            self.inside[name] += 1
            assert self.inside[name] == 1, f"two work on {name}"

    def leave(self, *names: str) -> None:
        self.turns += 1
        for name in names:
            self.inside[name] -= 1


async def until_lost(held: Held) -> None:
    while not held.lost:  # noqa: ASYNC110 - a handler has nothing to wait for: it looks, between two steps of its work
        await asyncio.sleep(0.1)


def in_use(gate: LocalGate) -> list[str]:
    return list(gate.platform.gateway.policies.locks.standing())


def test_two_agents_in_opposite_order_take_turns() -> None:
    """D6, D8: however the names are written, nobody deadlocks, nobody works beside another, epochs grow."""
    till = Till()

    def agent_of(name: str, *names: str) -> Agent:
        agent = Agent(name, concurrency=ORDERS)

        @agent.handles("move")
        async def move(_: Any, ctx: Context) -> int:
            async with ctx.lock(*names, timeout=25) as held:
                till.enter(*names)
                await asyncio.sleep(0.1)
                till.epochs.append(held.epoch)
                till.leave(*names)
            return held.epoch

        return agent

    async def story() -> None:
        one, two = agent_of("one", "stock", "invoices"), agent_of("two", "invoices", "stock")
        async with local_gate(one, two) as gate:
            asked = [gate.call(name, "move", f"o{number}") for number in range(ORDERS) for name in ("one", "two")]
            await asyncio.gather(*asked)
            assert till.turns == 2 * ORDERS
            assert till.epochs == sorted(till.epochs)
            await asyncio.sleep(1)
            assert in_use(gate) == []

    run_virtual(story)


def test_readers_share_and_writers_do_not() -> None:
    """`mode="shared"` lets readers in together; the writer waits for all of them, and they for it."""
    together: list[int] = []
    agent = Agent("books", concurrency=32)
    inside: Counter[str] = Counter()

    @agent.handles("read", effect="read")
    async def read(_: Any, ctx: Context) -> None:
        async with ctx.lock("ledger", mode="shared"):
            inside["read"] += 1
            together.append(inside["read"])
            assert inside["write"] == 0
            await asyncio.sleep(0.5)
            inside["read"] -= 1

    @agent.handles("write")
    async def write(_: Any, ctx: Context) -> None:
        async with ctx.lock("ledger"):
            inside["write"] += 1
            assert inside["read"] == 0
            await asyncio.sleep(0.5)
            inside["write"] -= 1

    async def story() -> None:
        async with local_gate(agent) as gate:
            reads = [gate.call("books", "read", effect="read") for _ in range(5)]
            await asyncio.gather(*reads, gate.call("books", "write", "w"), *[gate.call("books", "write", "v")])
            assert max(together) > 1

    run_virtual(story)


def test_an_error_in_the_block_and_a_time_out_free_everything() -> None:
    """D5: whoever leaves, leaves nothing behind; a time-out says who has the lock."""
    agent = Agent("bank", concurrency=8)

    @agent.handles("fail")
    async def fail(_: Any, ctx: Context) -> None:
        async with ctx.lock("till"):
            await asyncio.sleep(1)
            raise RuntimeError("no change")

    @agent.handles("hold")
    async def hold(_: Any, ctx: Context) -> None:
        async with ctx.lock("till"):
            await asyncio.sleep(20)

    @agent.handles("wait")
    async def wait(_: Any, ctx: Context) -> str:
        try:
            async with ctx.lock("till", timeout=2):
                return "held"
        except CallFailed as failed:
            return f"{failed.code}: {failed.detail.partition(':')[2]}"

    async def story() -> None:
        async with local_gate(agent) as gate:
            with pytest.raises(CallFailed, match="no change"):
                await gate.call("bank", "fail", "o1")
            assert in_use(gate) == []
            holds = asyncio.ensure_future(gate.call("bank", "hold", "o2"))
            await asyncio.sleep(1)
            told = await gate.call("bank", "wait", "o3")
            assert told.startswith("deadline_exceeded")
            assert "bank.hold(o2) (unit" in told
            await holds
            assert await gate.call("bank", "wait", "o4") == "held"

    run_virtual(story)


def test_a_handler_that_is_interrupted_while_it_waits_takes_nothing() -> None:
    """D5: a read that is stopped while it waits for a lock, or in the moment of the grant, does not hold it."""
    agent = Agent("bank", concurrency=8)

    @agent.handles("hold")
    async def hold(seconds: float, ctx: Context) -> None:
        async with ctx.lock("till", timeout=25):
            await asyncio.sleep(seconds)

    @agent.handles("look", effect="read")
    async def look(_: Any, ctx: Context) -> None:
        async with ctx.lock("till", timeout=25):
            await asyncio.sleep(60)

    async def story() -> None:
        async with local_gate(agent) as gate:
            for number in range(10):
                holds = asyncio.ensure_future(gate.call("bank", "hold", f"o{number}", 2.0))
                await asyncio.sleep(0.5)
                looks = asyncio.ensure_future(gate.call("bank", "look", effect="read"))
                await asyncio.sleep(1.4 + number / 50)
                looks.cancel()
                await holds
                await asyncio.sleep(0.1)
                assert in_use(gate) == []

    run_virtual(story)


def test_a_session_lock_is_released_by_hand() -> None:
    """D8: it survives the unit that took it, and ends when its process says so."""
    agent = Agent("bank")
    kept: list[Held] = []

    @agent.handles("open")
    async def open_till(_: Any, ctx: Context) -> None:
        kept.append(await ctx.lock("till", scope="session").acquire())

    @agent.handles("close")
    async def close_till(_: Any, ctx: Context) -> None:
        kept.pop().release()

    async def story() -> None:
        async with local_gate(agent) as gate:
            await gate.call("bank", "open", "day-1")
            await asyncio.sleep(40)
            assert in_use(gate) == ["till"]
            assert not kept[0].lost
            await gate.call("bank", "close", "day-1")
            assert in_use(gate) == []

    run_virtual(story)


def test_a_lost_lock_ends_the_work_under_it() -> None:
    """D8: a process cut off for longer than the lease is told when it is back: at its next call, or at the end."""
    agent, other = Agent("bank", concurrency=8), Agent("depot")

    @agent.handles("next_call", timeout_s=60)
    async def next_call(_: Any, ctx: Context) -> None:
        async with ctx.lock("till") as held:
            await until_lost(held)
            await ctx.call("depot", "book", "b1")

    @agent.handles("at_exit", timeout_s=60)
    async def at_exit(_: Any, ctx: Context) -> None:
        async with ctx.lock("drawer") as held:
            await until_lost(held)

    @agent.handles("catch", timeout_s=60)
    async def catch(_: Any, ctx: Context) -> str:
        with pytest.raises(CallFailed, match="lease_lost"):
            async with ctx.lock("safe") as held:
                await until_lost(held)
        with pytest.raises(CallFailed, match="lease_lost"):
            ctx.lock("other")
        return "knows"

    booked: list[str] = []

    @other.handles("book")
    async def book(_: Any, ctx: Context) -> None:
        booked.append(ctx.key)

    async def story() -> None:
        async with local_gate(agent, other, settings=Settings(locks=LockOptions(lease_s=1.5))) as gate:
            # Beats come every 2 s, so that a lease of 1.5 s ends before the second one.
            ends = await asyncio.gather(
                gate.call("bank", "next_call", "o1", timeout=50),
                gate.call("bank", "at_exit", "o2", timeout=50),
                gate.call("bank", "catch", "o3", timeout=50),
                return_exceptions=True,
            )
            assert [str(end).partition(":")[0] for end in ends] == ["handler_error", "handler_error", "knows"]
            assert all("lease_lost" in str(end) for end in ends[:2])
            assert booked == []
            assert gate.platform.gateway.counters.locks_lost == 3

    run_virtual(story)


def test_handlers_in_threads_block() -> None:
    """EXPERIENCE: `SyncContext` has the same names; a stop interrupts the wait of a thread."""
    agent = Agent("bank", concurrency=4)
    till, entered = Till(), threading.Event()

    @agent.handles("move")
    def move(_: Any, ctx: SyncContext) -> int:
        with ctx.lock("b", "a") as held:
            till.enter("a", "b")
            till.leave("a", "b")
            return held.epoch

    @agent.handles("hold")
    def hold(_: Any, ctx: SyncContext) -> str:
        held = ctx.lock("a").acquire()
        entered.set()
        while not ctx.expired:
            threading.Event().wait(0.01)
        threading.Event().wait(0.2)  # so that the deadline is over for its caller as well
        held.release()
        return "held"

    @agent.handles("look", effect="read")
    def look(_: Any, ctx: SyncContext) -> None:
        with ctx.lock("a"):
            till.turns += 100

    async def story() -> None:
        async with local_gate(agent) as gate:
            epochs = await asyncio.gather(
                *(gate.call("bank", "move", f"o{number}", returns=int) for number in range(8))
            )
            assert len(set(epochs)) == till.turns == 8
            holds = asyncio.ensure_future(gate.call("bank", "hold", "h", timeout=1.5))
            await asyncio.get_running_loop().run_in_executor(None, entered.wait)
            with pytest.raises(CallFailed, match="deadline_exceeded"):
                await gate.call("bank", "look", effect="read", timeout=0.3)
            with pytest.raises(CallFailed, match="deadline_exceeded"):
                await holds
            for _ in range(500):
                if not in_use(gate):
                    break
                await asyncio.sleep(0.01)
            assert in_use(gate) == []
            assert till.turns == 8

    asyncio.run(story())


def test_a_fake_context_grants_at_once() -> None:
    """Handlers with locks can be tested without a gate."""

    async def story() -> None:
        ctx = Context.fake()
        async with ctx.lock("a", "b") as held:
            assert (held.epoch, held.lost) == (1, False)
        assert ctx.locks == [("a", "b")]
        sync = SyncContext.fake()
        with sync.lock("c", mode="shared") as held:
            assert held.mode == "shared"
        assert sync.locks == [("c",)]

    run_virtual(story)


def test_what_cannot_be_a_name_is_said_before_it_is_sent() -> None:
    """A wrong argument is a `TypeError`, what no message may carry a `bad_request`."""
    ctx = Context.fake()
    with pytest.raises(TypeError, match="one after the other"):
        ctx.lock(["a", "b"])  # type: ignore[arg-type]  # a list, as somebody will try
    with pytest.raises(CallFailed, match="bad_request"):
        ctx.lock("\ud800")
