"""Agents that wait for one another's news, over real links and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context, SyncContext, TryLater
from agentgate.config import Settings
from agentgate.core.signals import SignalOptions
from agentgate.gateway.gateway import Gateway
from agentgate.testing import LocalGate, local_gate
from tests.sim.wire_peer import play

Work = Callable[[Context], Awaitable[Any]]


def agent_of(name: str, **work: Work) -> Agent:
    """An agent with these handlers, which get nothing but their context; `review` promises `finished`."""
    agent = Agent(name)

    def add(task_type: str, do: Work) -> None:
        @agent.handles(task_type, promises=["finished"] if task_type == "review" else [])
        async def handle(payload: Any, ctx: Context) -> Any:
            return await do(ctx)

    for task_type, do in work.items():
        add(task_type, do)
    return agent


@asynccontextmanager
async def gate_of(*agents: Agent, **options: Any) -> AsyncIterator[LocalGate]:
    """A gate with these agents; in the end nothing of any wait or promise is left in it."""
    async with local_gate(*agents, settings=Settings(signals=SignalOptions(**options))) as gate:
        yield gate
        await asyncio.sleep(60)
        assert left_over(gate.platform.gateway) == (0, 0, [], [])


def left_over(gateway: Gateway) -> tuple[int, int, list[Any], list[Any]]:
    book = gateway.signals.book
    return book.waiting, len(book._promises), list(book._waits), gateway.awaiting.open_waits()  # noqa: SLF001 - all of it


async def refused(awaited: Awaitable[Any]) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        await awaited
    return failed.value


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("waits_first", [True, False])
def test_news_reach_who_waits_whoever_is_first(waits_first: bool) -> None:
    """D4, 4.4: the value comes back from `wait_for`, about the unit's own business key if nothing is said."""

    async def wait(ctx: Context) -> Any:
        await asyncio.sleep(0 if waits_first else 2)
        return await ctx.wait_for("sent", from_agent="order", returns=list[int])

    async def send(ctx: Context) -> None:
        await asyncio.sleep(1)
        await ctx.signal("sent", value=[7], to="review_agent")

    async def story() -> None:
        async with gate_of(agent_of("order", send=send), agent_of("review_agent", wait=wait)) as gate:
            waiting = asyncio.create_task(gate.call("review_agent", "wait", "o1"))
            await gate.call("order", "send", "o1")
            assert await waiting == [7]
            assert gate.platform.gateway.signals.book.kept == 0
            assert gate.platform.gateway.counters.waits == {"": 1}

    play(story)


def test_two_sides_that_need_news_of_one_another_go_on() -> None:
    """J4: order sends material and waits for the verdict, review waits for material; nobody is held up."""

    async def confirm(ctx: Context) -> Any:
        checking = ctx.start("reviewer", "review", ctx.business_key)
        await ctx.signal("materials", value="pictures")
        return await ctx.wait_for("finished", from_agent="reviewer"), await checking

    async def review(ctx: Context) -> str:
        material = await ctx.wait_for("materials")
        await ctx.signal("finished", value=f"seen {material}")
        return "paid"

    async def story() -> None:
        async with gate_of(agent_of("order", confirm=confirm), agent_of("reviewer", review=review)) as gate:
            assert await gate.call("order", "confirm", "o1") == ["seen pictures", "paid"]
            assert gate.platform.gateway.signals.book.kept == 0

    play(story)


@pytest.mark.parametrize("task_type", ["review", "check"])
def test_a_mutual_wait_ends_needing_a_human(task_type: str) -> None:
    """J4, D5, D10: each waits for the other's news first. One ends in time; the other when a promise is broken by that,
    or at a time of its own. A repeat gets the state at once.
    """

    async def confirm(ctx: Context) -> None:
        await ctx.wait_for("finished", from_agent="reviewer")

    async def review(ctx: Context) -> None:
        await ctx.wait_for("materials", from_agent="order")

    async def story() -> None:
        async with gate_of(agent_of("order", confirm=confirm), agent_of("reviewer", **{task_type: review})) as gate:
            ends: list[float] = []

            async def ended(target: str, task_type: str) -> str:
                code = (await refused(gate.call(target, task_type, "o1"))).code
                ends.append(now())
                return code

            calls = (("order", "confirm"), ("reviewer", task_type))
            ending = [asyncio.create_task(ended(*call)) for call in calls]
            assert [await one for one in ending] == ["needs_human", "needs_human"]
            assert 0.85 * 28.5 - 0.1 <= ends[0] <= ends[1] < 28.5
            again = await refused(gate.call("order", "confirm", "o1"))
            assert (again.code, now()) == ("needs_human", ends[1])
            if task_type == "review":
                assert again.detail == "reviewer has ended its work on 'o1' without it"
                assert ends[0] == ends[1]
            else:
                assert again.detail.startswith("reviewer did not say `finished` about 'o1' within 2")
                assert ends[0] < ends[1] - 0.1

    play(story)


def test_a_key_that_needed_a_human_can_be_run_again() -> None:
    """D10, 4.2: once the news are there, `again` runs it; until then the stored state is what a repeat gets."""

    async def wait(ctx: Context) -> Any:
        return await ctx.wait_for("approved", timeout=2.0)

    async def approve(ctx: Context) -> None:
        await ctx.signal("approved", value="by hand")

    async def story() -> None:
        async with gate_of(agent_of("order", wait=wait, approve=approve)) as gate:
            assert (await refused(gate.call("order", "wait", "o1"))).code == "needs_human"
            assert now() == pytest.approx(2.0, abs=0.1)
            await gate.call("order", "approve", "o1")
            assert (await refused(gate.call("order", "wait", "o1"))).code == "needs_human"
            assert await gate.call("order", "wait", "o1", again=True) == "by hand"

    play(story)


@pytest.mark.parametrize(
    ("end", "code", "at"),
    [("returns", "promise_broken", 1.0), ("raises", "promise_broken", 1.0), ("keeps it", "", 1.0)],
)
def test_who_waits_for_a_promise_hears_that_it_is_broken(end: str, code: str, at: float) -> None:
    """4.4: the agent has ended its work on this object without the signal; the waiter does not sit out its time."""

    async def wait(ctx: Context) -> list[Any]:
        try:
            await ctx.wait_for("finished", from_agent="reviewer")
        except CallFailed as error:
            return [error.code, now()]
        return ["", now()]

    async def review(ctx: Context) -> None:
        await asyncio.sleep(1)
        if end == "raises":
            raise RuntimeError("it went wrong")
        if end == "keeps it":
            await ctx.signal("finished")

    async def story() -> None:
        async with gate_of(agent_of("order", wait=wait), agent_of("reviewer", review=review)) as gate:
            waiting = asyncio.create_task(gate.call("order", "wait", "o1"))
            await asyncio.wait({asyncio.create_task(gate.call("reviewer", "review", "o1"))})
            assert await waiting == [code, pytest.approx(at, abs=0.1)]

    play(story)


def test_a_promise_survives_an_attempt_that_is_run_again() -> None:
    """4.1, 4.4: a handler that asks for time ends its unit, and the next attempt keeps the promise."""
    tries: list[int] = []

    async def wait(ctx: Context) -> Any:
        return await ctx.wait_for("finished", from_agent="reviewer")

    async def review(ctx: Context) -> None:
        tries.append(ctx.attempt)
        if ctx.attempt == 1:
            raise TryLater("busy", after=1.0)
        await ctx.signal("finished", value="at last")

    async def story() -> None:
        async with gate_of(agent_of("order", wait=wait), agent_of("reviewer", review=review)) as gate:
            waiting = asyncio.create_task(gate.call("order", "wait", "o1"))
            await gate.call("reviewer", "review", "o1")
            assert await waiting == "at last"
            assert tries == [1, 2]

    play(story)


def test_a_wait_that_a_handler_left_behind_ends_with_its_unit() -> None:
    """Everything has an owner: no wait outlives the unit that made it, at the agent or at the gate."""

    async def leave(ctx: Context) -> str:
        handle = ctx.wait_for("never").start()
        started = ctx.start("order", "slow", "s1")
        left.extend([handle, started])
        await asyncio.sleep(0.1)
        return "done"

    async def slow(ctx: Context) -> None:
        await asyncio.sleep(5)

    left: list[Any] = []

    async def story() -> None:
        async with gate_of(agent_of("order", leave=leave, slow=slow)) as gate:
            assert await gate.call("order", "leave", "o1") == "done"
            await asyncio.sleep(0.1)
            assert [(await refused(handle)).code for handle in left] == ["cancelled", "cancelled"]

    play(story)


def test_the_first_to_end_wins_and_the_others_are_cancelled() -> None:
    """4.4 `first`: a call, a handle and a wait; the winner's value comes at its time, the gate forgets the rest."""
    told: list[str] = []

    async def race(ctx: Context) -> list[Any]:
        slow = ctx.start("order", "slow", "s1")
        gateway = gates[0].platform.gateway
        looks = asyncio.get_running_loop().call_later(0.5, lambda: seen.extend(gateway.awaiting.open_waits()))
        value = await ctx.first(ctx.call("order", "fast", "f1"), slow, ctx.wait_for("never"))
        looks.cancel()
        return [value, now(), slow.done, gateway.awaiting.open_waits(), gateway.signals.book.waiting]

    async def slow(ctx: Context) -> None:
        try:
            await asyncio.sleep(5)
        finally:
            told.append("slow ended")

    async def fast(ctx: Context) -> str:
        await asyncio.sleep(1)
        return "fast"

    gates: list[LocalGate] = []
    seen: list[Any] = []

    async def story() -> None:
        async with gate_of(agent_of("order", race=race, slow=slow, fast=fast)) as gate:
            gates.append(gate)
            value = await gate.call("order", "race", "o1")
            assert value == ["fast", pytest.approx(1.0, abs=0.1), True, [], 1]
            assert [len(first.any_of) for first in seen] == [3]

    play(story)


def test_a_handle_is_waited_for_only_while_somebody_does() -> None:
    """4.4 `start`: no wait until the handle is awaited, none after a time-out of one's own, one again later."""

    async def begin(ctx: Context) -> list[Any]:
        awaiting = gates[0].platform.gateway.awaiting
        handle = ctx.start("order", "slow", "s1", returns=str)
        await asyncio.sleep(0.5)
        seen = [len(awaiting.open_waits())]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await handle
        await asyncio.sleep(0.1)
        seen.append(len(awaiting.open_waits()))
        asyncio.get_running_loop().call_later(0.5, lambda: seen.append(len(awaiting.open_waits())))
        return [await handle, await handle, await ctx.first(handle), seen]

    async def slow(ctx: Context) -> str:
        await asyncio.sleep(3)
        return "slow"

    gates: list[LocalGate] = []

    async def story() -> None:
        async with gate_of(agent_of("order", begin=begin, slow=slow)) as gate:
            gates.append(gate)
            assert await gate.call("order", "begin", "o1") == ["slow", "slow", "slow", [0, 0, 1]]

    play(story)


def test_calls_are_awaited_together_as_ever() -> None:
    """EXPERIENCE: what `ctx.call` returns is a coroutine for whatever takes one."""

    async def gather(ctx: Context) -> list[Any]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.call("order", "add", f"{n}", n, returns=int)) for n in range(3)]
        values = [task.result() for task in tasks]
        values += await asyncio.gather(*(ctx.call("order", "add", f"{n}", n) for n in range(3)))
        return [*values, await asyncio.wait_for(ctx.call("order", "add", "7"), 5)]

    async def add(ctx: Context) -> int:
        return int(ctx.business_key) + 1

    async def story() -> None:
        async with gate_of(agent_of("order", gather=gather, add=add)) as gate:
            assert await gate.call("order", "gather", "o1") == [1, 2, 3, 1, 2, 3, 8]

    play(story)


def test_sync_handlers_have_the_same_names() -> None:
    """EXPERIENCE: `wait_for`, `signal`, `start` and `first`, blocking their thread; waits end in `needs_human`."""
    agent = Agent("order")

    @agent.handles("wait")
    def wait(payload: Any, ctx: SyncContext) -> list[Any]:
        handle = ctx.start("order", "add", "k1", 1, returns=int)
        other = ctx.start("order", "add", "k2", 2, returns=int)
        values: list[Any] = [handle.result(), ctx.first(other), handle.result(), handle.done]
        ctx.start("order", "slow", "k3")
        ctx.signal("kept", value="news")
        values += [ctx.wait_for("kept", returns=str), ctx.wait_for("sent", from_agent="order", about="o2")]
        with pytest.raises(CallFailed) as failed:
            ctx.wait_for("never", timeout=0.05)
        return [*values, failed.value.code]

    @agent.handles("add")
    async def add(payload: int) -> int:
        return payload + 1

    @agent.handles("slow")
    async def slow(payload: Any) -> None:
        await asyncio.sleep(0.5)

    @agent.handles("send")
    async def send(payload: Any, ctx: Context) -> None:
        await ctx.signal("sent", value=7)

    async def story() -> None:
        async with local_gate(agent) as gate:
            waiting = asyncio.get_running_loop().create_task(gate.call("order", "wait", "o1"))
            await gate.call("order", "send", "o2")
            assert await waiting == [2, 3, 2, True, "news", 7, "needs_human"]

    asyncio.run(story())
