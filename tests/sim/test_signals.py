"""Agents that wait for one another's news, over real links and in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate import CallFailed, Context, TryLater
from agentgate.sdk.answers import WAITED_IN_VAIN
from agentgate.testing import LocalGate
from tests.sim.news_kit import agent_of, gate_of, now, refused, resting_in
from tests.sim.wire_peer import play


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
        async with gate_of(agent_of("order", confirm=confirm), agent_of("reviewer", 8, **{task_type: review})) as gate:
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
                assert again.detail == "reviewer has ended its work on 'o1' without saying `finished`"
                assert again.advice == WAITED_IN_VAIN["promise_broken"]
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


def test_who_waits_for_a_promise_that_was_just_broken_hears_so_at_once() -> None:
    """4.4: it has had the answer of the one who promised, and begins to wait only then; a new try is waited for."""

    async def wait(ctx: Context) -> list[Any]:
        await ctx.call("reviewer", "review", ctx.business_key)
        began = now()
        failed = await refused(ctx.wait_for("finished", from_agent="reviewer"))
        again = ctx.start("reviewer", "review", ctx.business_key, action="again")
        await asyncio.sleep(0.5)
        return [failed.code, now() - began, await ctx.wait_for("finished", from_agent="reviewer"), await again]

    async def review(ctx: Context) -> None:
        await asyncio.sleep(1)
        tries.append(ctx.unit)
        if len(tries) == 2:
            await ctx.signal("finished", value="seen")

    tries: list[str] = []

    async def story() -> None:
        async with gate_of(agent_of("order", wait=wait), agent_of("reviewer", review=review)) as gate:
            assert await gate.call("order", "wait", "o1") == ["promise_broken", pytest.approx(0.5), "seen", None]

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


def test_a_unit_that_waits_for_news_gives_its_place_to_who_brings_them() -> None:
    """D4, 4.3: an agent with one place; the unit that signals runs while the other waits, which then goes on."""

    async def wait(ctx: Context) -> Any:
        return await ctx.wait_for("sent")

    async def send(ctx: Context) -> int:
        await ctx.signal("sent", value="from the same place")
        return resting_in(gates[0])

    gates: list[LocalGate] = []

    async def story() -> None:
        narrow = agent_of("order", concurrency=1, wait=wait, send=send)
        async with gate_of(narrow) as gate:
            gates.append(gate)
            waiting = asyncio.create_task(gate.call("order", "wait", "o1"))
            await asyncio.sleep(1)
            assert resting_in(gate) == 1
            assert await gate.call("order", "send", "o1") == 0
            assert await waiting == "from the same place"

    play(story)
