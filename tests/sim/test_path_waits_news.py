"""Nobody waits for ever for news, or for what was begun earlier: mutual waits are found, and only those."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context
from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.policy import Mode
from agentgate.model import Skill, Tier
from agentgate.testing import LocalGate, local_gate
from tests.sim.news_kit import gate_of, now, refused
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

Work = Callable[[Context], Awaitable[Any]]

FOUND_S = 3.0  # by then a knot has been signalled (D2)
PROMISES = {"confirm": ["materials.sent"], "review": ["review.finished"], "file": ["filed"]}


def agent_of(name: str, tier: Tier = "standard", **work: Work) -> Agent:
    """An agent with these handlers, which promise what work of their kind leads to."""
    agent = Agent(name, tier=tier)

    def add(task_type: str, do: Work) -> None:
        @agent.handles(task_type, promises=PROMISES.get(task_type, []))
        async def handle(payload: Any, ctx: Context) -> Any:
            return await do(ctx)

    for task_type, do in work.items():
        add(task_type, do)
    return agent


def team(confirm: Work, review: Work, gives_way: str = "review_agent", **more: Work) -> list[Agent]:
    """The order team; who gives way is of the lower tier."""
    tiers: dict[str, Tier] = {gives_way: "optional"}
    return [
        agent_of("order_agent", tiers.get("order_agent", "core"), confirm=confirm),
        agent_of("review_agent", tiers.get("review_agent", "core"), review=review, **more),
    ]


class Desk:
    """What the units of a story have been told, and when."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, float]] = []

    async def ask(self, who: str, asked: Awaitable[Any], otherwise: Any) -> Any:
        """Wait for this; whoever gives way writes it down and goes on with what it has."""
        try:
            return await asked
        except CallFailed as failed:
            self.told.append((who, failed.code, now()))
            return otherwise


def found_in(gate: LocalGate) -> tuple[int, int, int]:
    deadlocks = gate.platform.gateway.waits.deadlocks
    return deadlocks.by_how["refused"], deadlocks.by_how["confirmed"], deadlocks.resolved


async def both(gate: LocalGate) -> list[Any]:
    """The order is confirmed and reviewed, each at the request of somebody."""
    calls = [gate.call("order_agent", "confirm", "o1"), gate.call("review_agent", "review", "o1")]
    return list(await asyncio.gather(*calls))


@pytest.mark.parametrize("gives_way", ["order_agent", "review_agent"])
def test_two_that_wait_for_one_another_s_news_are_found(gives_way: str) -> None:
    """D2, D3, D4, J4: within 3 s one of them is told at its waiting point; it takes another way, and both get on."""
    desk = Desk()

    async def confirm(ctx: Context) -> Any:
        verdict = await desk.ask("order_agent", ctx.wait_for("review.finished", from_agent="review_agent"), "unseen")
        await ctx.signal("materials.sent", value="pictures")
        return verdict

    async def review(ctx: Context) -> Any:
        seen = await desk.ask("review_agent", ctx.wait_for("materials.sent", from_agent="order_agent"), "nothing")
        await ctx.signal("review.finished", value="fine")
        return seen

    async def story() -> None:
        async with gate_of(*team(confirm, review, gives_way)) as gate:
            expected = ["unseen", "pictures"] if gives_way == "order_agent" else ["fine", "nothing"]
            assert await both(gate) == expected
            [(who, code, at)] = desk.told
            assert (who, code) == (gives_way, "deadlock")
            assert 1.0 <= at < FOUND_S
            assert now() < FOUND_S
            assert found_in(gate) == (0, 1, 1)
            gateway = gate.platform.gateway
            assert gateway.counters.waits == {"deadlock": 1, "": 1}
            [finding] = [item for item in gateway.findings.of("default") if item.kind == "deadlock"]
            assert sorted(finding.subject.split(" > ")) == ["order_agent", "review_agent"]
            assert "review_agent.review(o1)" in finding.evidence["cycle"]

    play(story)


@pytest.mark.parametrize("gives_way", ["order_agent", "review_agent"])
@pytest.mark.parametrize("begun", ["awaited", "earlier", "first"])
def test_a_circle_of_a_call_and_news_is_found(begun: str, gives_way: str) -> None:
    """D3, D4, 4.4: one awaits its call, however it has begun it; the other waits for news that come after that."""
    desk, kinds = Desk(), set[Any]()

    async def confirm(ctx: Context) -> Any:
        gateway = gates[0].platform.gateway
        asyncio.get_running_loop().call_later(
            7.0 if begun == "earlier" else 1.0,
            lambda: kinds.update((wait.kind, wait.certain) for wait in gateway.policies.graph.all()),
        )
        if begun == "awaited":
            asked: Awaitable[Any] = ctx.call("review_agent", "review", ctx.business_key)
        elif begun == "first":
            review = ctx.call("review_agent", "review", ctx.business_key)
            asked = ctx.first(review, ctx.wait_for("review.finished", from_agent="review_agent"))
        else:
            handle = ctx.start("review_agent", "review", ctx.business_key)
            await asyncio.sleep(6)
            assert found_in(gates[0]) == (0, 0, 0), "it does not wait yet"
            asked = handle
        verdict = await desk.ask("order_agent", asked, "unseen")
        await ctx.signal("materials.sent", value="pictures")
        return verdict

    async def review(ctx: Context) -> Any:
        seen = await desk.ask("review_agent", ctx.wait_for("materials.sent", from_agent="order_agent"), "nothing")
        await ctx.signal("review.finished", value=seen)
        return seen

    gates: list[LocalGate] = []

    async def story() -> None:
        async with gate_of(*team(confirm, review, gives_way)) as gate:
            gates.append(gate)
            value = await gate.call("order_agent", "confirm", "o1")
            assert value == ("unseen" if gives_way == "order_agent" else "nothing")
            [(who, code, at)] = desk.told
            assert (who, code) == (gives_way, "deadlock")
            assert at < FOUND_S + (6 if begun == "earlier" else 0)
            assert kinds == {("signal", False), ("first", False) if begun == "first" else ("call", True)}
            assert found_in(gate) == (0, 1, 1)

    play(story)


def test_who_may_still_be_told_by_others_is_left_alone() -> None:
    """4.4, invariant 3: another open unit has promised it as well, and keeps that after a while; no false alarm."""

    async def confirm(ctx: Context) -> Any:
        verdict = await ctx.wait_for("review.finished", from_agent="review_agent")
        await ctx.signal("materials.sent", value="pictures")
        return verdict

    async def review(ctx: Context) -> Any:
        if ctx.action == "by hand":
            await asyncio.sleep(8)
            await ctx.signal("review.finished", value="by hand")
            return "signed"
        return await ctx.wait_for("materials.sent", from_agent="order_agent")

    async def story() -> None:
        async with gate_of(*team(confirm, review)) as gate:
            by_hand = asyncio.create_task(gate.call("review_agent", "review", "o1", action="by hand"))
            assert await both(gate) == ["by hand", "pictures"]
            assert await by_hand == "signed"
            assert found_in(gate) == (0, 0, 0)

    play(story)


def test_who_waits_for_somebody_who_does_not_run_yet_is_left_alone() -> None:
    """4.4, invariant 3: no open unit has promised it about this order; whoever does may begin at any time."""

    async def confirm(ctx: Context) -> Any:
        verdict = await ctx.wait_for("review.finished", from_agent="review_agent")
        await ctx.signal("materials.sent", value="pictures")
        return verdict

    async def review(ctx: Context) -> Any:
        await ctx.signal("review.finished", value="fine")
        return "done"

    async def audit(ctx: Context) -> Any:
        return await ctx.wait_for("materials.sent", from_agent="order_agent")

    async def story() -> None:
        async with gate_of(*team(confirm, review), agent_of("audit_agent", audit=audit)) as gate:
            waiting = [gate.call("order_agent", "confirm", "o1"), gate.call("audit_agent", "audit", "o1")]
            tasks = [asyncio.create_task(call) for call in waiting]
            await gate.call("review_agent", "review", "o2")
            await asyncio.sleep(8)
            assert await gate.call("review_agent", "review", "o1") == "done"
            assert [await task for task in tasks] == ["fine", "pictures"]
            assert found_in(gate) == (0, 0, 0)

    play(story)


def test_two_ways_to_the_same_news_are_no_circle() -> None:
    """4.4: a diamond: two wait for the archive, and the order for both of them; the archive is just slow."""

    async def confirm(ctx: Context) -> Any:
        waits = (ctx.wait_for("review.finished", from_agent=name) for name in ("review_agent", "audit_agent"))
        return await asyncio.gather(*waits)

    async def review(ctx: Context) -> Any:
        filed = await ctx.wait_for("filed", from_agent="archive")
        await ctx.signal("review.finished", value=filed)

    async def file(ctx: Context) -> Any:
        await asyncio.sleep(8)
        await ctx.signal("filed", value="here")

    async def story() -> None:
        agents = (*team(confirm, review), agent_of("audit_agent", review=review), agent_of("archive", file=file))
        async with gate_of(*agents) as gate:
            names = (("order_agent", "confirm"), ("audit_agent", "review"), ("archive", "file"))
            calls = [gate.call(name, task_type, "o1") for name, task_type in names]
            values = await asyncio.gather(*calls, gate.call("review_agent", "review", "o1"))
            assert values[0] == ["here", "here"]
            assert found_in(gate) == (0, 0, 0)

    play(story)


def test_the_first_of_several_waits_as_long_as_one_of_them_gets_on() -> None:
    """4.4: a mutual wait beside a call that runs is no knot; the call is the first to end."""

    async def confirm(ctx: Context) -> Any:
        slow = ctx.call("archive", "file", ctx.business_key, returns=str)
        return await ctx.first(ctx.wait_for("review.finished", from_agent="review_agent"), slow)

    async def review(ctx: Context) -> Any:
        await ctx.wait_for("materials.sent", from_agent="order_agent", timeout=10)

    async def file(ctx: Context) -> str:
        await asyncio.sleep(8)
        await ctx.signal("filed")
        return "filed"

    async def story() -> None:
        async with gate_of(*team(confirm, review), agent_of("archive", file=file)) as gate:
            reviewing = asyncio.ensure_future(refused(gate.call("review_agent", "review", "o1")))
            assert await gate.call("order_agent", "confirm", "o1") == "filed"
            assert (await reviewing).code == "needs_human"
            assert found_in(gate) == (0, 0, 0)

    play(story)


@pytest.mark.parametrize(("mode", "found"), [("observe", 1), ("off", 0)])
def test_observed_or_off_the_waits_end_by_their_time(mode: Mode, found: int) -> None:
    """I2: the finding comes when it is observed, and nobody gives way; either way units rest while they wait."""

    async def confirm(ctx: Context) -> Any:
        await ctx.wait_for("review.finished", from_agent="review_agent", timeout=9)

    async def review(ctx: Context) -> Any:
        await ctx.wait_for("materials.sent", from_agent="order_agent", timeout=9)

    async def story() -> None:
        settings = Settings(mechanisms={**default_modes(), "wait_graph": mode, "watchdog": mode})
        async with local_gate(*team(confirm, review), settings=settings) as gate:
            ending = asyncio.ensure_future(asyncio.gather(both(gate), return_exceptions=True))
            await asyncio.sleep(5)
            gateway = gate.platform.gateway
            assert (len(gateway.resting), len(gateway.policies.graph)) == (2, 2 * found)
            assert [unit.was_victim for unit in gateway.units.running()] == [False, False]
            [failed] = await ending
            assert isinstance(failed, CallFailed)
            assert failed.code == "needs_human"
            assert now() == pytest.approx(9.0, abs=0.2)
            by_how = gate.platform.gateway.waits.deadlocks.by_how
            assert by_how == {"refused": 0, "confirmed": 0, "observed_closing": 0, "observed_standing": found}

    play(story)


# --- message by message

BLOCK = Skill(task_type="block")
VET = Skill(task_type="vet", promises=("vetted",), rests=True)


async def vetting(platform: Any, name: str) -> tuple[WirePeer, Invoked, Any]:
    """A process with one unit about o1 that has promised to say `vetted`, and the outcome of its call."""
    peer = WirePeer(platform, name, skills=(BLOCK, VET), concurrency=1).connect()
    root = WirePeer(platform, "shop").connect().call(name, "vet", "o1")
    return peer, await peer.next(), root


def test_the_answer_of_a_wait_that_was_ended_is_kept_for_it() -> None:
    """D3, 4.5: a process that was away is told `deadlock` as well, when it sends its `wait_for` again."""

    async def story() -> None:
        async with gate() as platform:
            a, in_a, of_a = await vetting(platform, "a")
            await asyncio.sleep(0.2)
            b, in_b, of_b = await vetting(platform, "b")
            for_b = a.ask("wait_for", name="vetted", about="o1", token=in_a.params.token, from_agent="b")
            ask = {"name": "vetted", "about": "o1", "token": in_b.params.token, "from_agent": "a"}
            for_a = b.ask("wait_for", "w1", **ask)
            await asyncio.sleep(0.2)
            b.leave()
            await asyncio.sleep(2)
            assert platform.gateway.waits.deadlocks.by_how["confirmed"] == 1
            assert (for_a.done(), for_b.done()) == (False, False), "the younger one gives way, and is not there"
            b.connect(units=(b.running(in_b),))
            b.send_calls_again()
            assert (await for_a).code == "deadlock"
            assert (await b.ask("signal", name="vetted", about="o1", token=in_b.params.token, value=1)).ok
            assert (await for_b).value == 1
            for peer, unit, root in ((a, in_a, of_a), (b, in_b, of_b)):
                peer.answer(unit, "done")
                assert (await root).ok
            assert len(platform.gateway.policies.graph) == 0

    play(story)


def test_a_call_that_was_only_started_is_refused_when_its_unit_would_wait_for_itself() -> None:
    """D2, 4.4: it may queue for the slot that its own unit has, as long as that does not stand still for it."""

    async def story() -> None:
        async with gate() as platform:
            peer = WirePeer(platform, "a", skills=(BLOCK,), concurrency=1).connect()
            shop = WirePeer(platform, "shop").connect()
            root = shop.call("a", "block", "o1")
            unit = await peer.next()
            call = peer.ask(
                "call",
                "c1",
                target="a",
                task_type="block",
                business_key="o2",
                token=unit.params.token,
                awaited=False,
            )
            await asyncio.sleep(5)
            waits, graph = platform.gateway.waits, platform.gateway.policies.graph
            assert (platform.gateway.policies.slots.queued("a"), len(graph)) == (1, 0)
            began = now()
            peer.send(method="wait", params={"id": "w1", "any_of": ["c1"]})
            ended = await call
            assert ended.error is not None
            assert (ended.code, ended.error.sent, now()) == ("deadlock", False, began)
            assert "a.block(o1): queues for a slot > a.block(o1)" in ended.error.detail
            assert (waits.deadlocks.by_how["refused"], waits.deadlocks.resolved) == (1, 1)
            peer.answer(unit, "done without")
            assert (await root).ok
            assert (len(graph), len(platform.gateway.resting)) == (0, 0)

    play(story)


def test_a_unit_that_goes_on_by_itself_is_in_no_knot() -> None:
    """4.4: the edge is there only between `wait` and `unwait`; a circle that was open for a moment is none."""

    async def story() -> None:
        async with gate() as platform:
            (a, in_a, of_a), (b, in_b, of_b) = await vetting(platform, "a"), await vetting(platform, "b")
            ask = {"name": "vetted", "about": "o1", "token": in_a.params.token, "from_agent": "b", "awaited": False}
            for_b = a.ask("wait_for", "w1", **ask)
            for_a = b.ask("wait_for", name="vetted", about="o1", token=in_b.params.token, from_agent="a")
            for number in range(8):
                a.send(method="wait", params={"id": f"x{number}", "any_of": ["w1"]})
                await asyncio.sleep(0.9)
                a.send(method="unwait", params={"id": f"x{number}"})
                await asyncio.sleep(0.1)
            assert (for_a.done(), for_b.done(), platform.gateway.waits.deadlocks.found) == (False, False, 0)
            assert (await a.ask("signal", name="vetted", about="o1", token=in_a.params.token, value=2)).ok
            assert (await for_a).value == 2
            for peer, unit, root in ((b, in_b, of_b), (a, in_a, of_a)):
                peer.answer(unit, "done")
                assert (await root).ok
            assert (await for_b).code == "promise_broken"
            assert len(platform.gateway.policies.graph) == 0

    play(story)
