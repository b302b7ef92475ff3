"""Nobody waits for ever: knots are refused where they would close, and opened where they did, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.policy import Mode
from agentgate.model import Outcome, Skill
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

BLOCK = Skill(task_type="block")
ASK = Skill(task_type="ask", rests=True)
SIGN = Skill(task_type="sign", rests=True, exclusive="business_key")
SKILLS = (BLOCK, ASK, SIGN)


def switched(mode: Mode) -> Settings:
    return Settings(mechanisms={**default_modes(), "wait_graph": mode})


def peers(platform: Platform, *names: str, concurrency: int = 1) -> list[WirePeer]:
    return [WirePeer(platform, name, skills=SKILLS, concurrency=concurrency).connect() for name in names]


def child(peer: WirePeer, unit: Invoked, target: str, key: str, task_type: str = "block", **more: Any) -> Any:
    return peer.call(target, task_type, key, token=unit.params.token, **more)


def is_empty(platform: Platform) -> bool:
    """Whether nothing is left of all waits."""
    gateway = platform.gateway
    return (len(gateway.policies.graph), len(gateway.resting)) == (0, 0)


def test_a_cycle_through_full_slots_is_refused_where_it_would_close() -> None:
    """D1, D3, D4: a calls b calls c calls a, whose slot is taken: the last call is told the cycle, and goes nowhere."""

    async def story() -> None:
        async with gate() as platform:
            a, b, c = peers(platform, "a", "b", "c")
            root = WirePeer(platform, "shop").connect().call("a", "block", "o1")
            in_a = await a.next()
            first = child(a, in_a, "b", "o1")
            in_b = await b.next()
            second = child(b, in_b, "c", "o1")
            in_c = await c.next()
            third = await child(c, in_c, "a", "o2")
            assert third.error is not None
            assert (third.code, third.error.sent, third.error.retry) == ("deadlock", False, "never")
            assert "c.block(o1): queues for a slot > a.block(o1) > b.block(o1) > c.block(o1)" in third.error.detail
            assert asyncio.get_running_loop().time() < 1
            assert platform.gateway.policies.slots.queued("a") == 0
            for peer, unit, waited in ((c, in_c, second), (b, in_b, first), (a, in_a, root)):
                peer.answer(unit, "done another way")
                assert (await waited).ok
            deadlocks = platform.gateway.waits.deadlocks
            assert (deadlocks.by_how["refused"], deadlocks.by_how["confirmed"], deadlocks.resolved) == (1, 0, 1)
            [finding] = [item for item in platform.gateway.findings.of("default") if item.kind == "deadlock"]
            assert finding.subject == "c > a > b"
            assert is_empty(platform)

    play(story)


def test_units_that_rest_leave_room_for_the_call_back() -> None:
    """DESIGN 4.3, D4: the same cycle of agents, but their handlers hold no thread: nothing is refused."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peers(platform, "a", "b")
            root = WirePeer(platform, "shop").connect().call("a", "ask", "o1")
            in_a = await a.next()
            first = child(a, in_a, "b", "o1", "ask")
            in_b = await b.next()
            second = child(b, in_b, "a", "o2", "ask")
            again = await a.next()
            for peer, unit, waited in ((a, again, second), (b, in_b, first), (a, in_a, root)):
                peer.answer(unit, "done")
                assert (await waited).ok
            assert platform.gateway.waits.deadlocks.found == 0
            assert is_empty(platform)

    play(story)


def test_joining_work_that_waits_for_oneself_gets_its_state_at_once() -> None:
    """C2, D3: work that waits for the object in one's hands is not waited for: the state comes back instead."""

    async def story() -> None:
        async with gate() as platform:
            a, third = peers(platform, "a", "third", concurrency=4)
            shop = WirePeer(platform, "shop").connect()
            one, two = shop.call("a", "ask", "o1"), shop.call("a", "sign", "o2")
            asks, signs = await a.next(), await a.next()
            owner = child(a, asks, "third", "x", "ask")
            in_third = await third.next()
            signature = child(third, in_third, "a", "o2", "sign")  # waits for o2, which `signs` holds
            await asyncio.sleep(0.1)
            joined = await child(a, signs, "third", "x", "ask")
            assert joined.error is not None
            assert joined.code == "in_progress"
            assert "cycle" in joined.error.detail
            a.answer(signs, "done without")
            assert (await two).ok
            a.answer(await a.next(), "signed")
            assert (await signature).ok
            third.answer(in_third, "done")
            assert (await owner).ok
            a.answer(asks, "done")
            assert (await one).ok
            assert is_empty(platform)

    play(story)


def test_a_knot_that_closes_behind_the_checks_is_opened_by_the_timer() -> None:
    """D2, D3: two wait for slots while somebody else may still free one; his instance is lost. One gives way in 3 s."""

    async def story() -> None:
        async with gate() as platform:
            (a,) = peers(platform, "a")
            b1 = WirePeer(platform, "b", instance="b.1", skills=SKILLS, concurrency=1).connect()
            b2 = WirePeer(platform, "b", instance="b.2", skills=SKILLS, concurrency=1).connect()
            shop = WirePeer(platform, "shop").connect()
            loop, waits = asyncio.get_running_loop(), platform.gateway.waits
            root, one, two = shop.call("a", "block", "o1"), shop.call("b", "block", "o2"), shop.call("b", "block", "o3")
            in_a, in_b1, _ = await a.next(), await b1.next(), await b2.next()
            below_a = child(a, in_a, "b", "o4")
            below_b = child(b1, in_b1, "a", "o5")
            await asyncio.sleep(5)
            assert [call.done() for call in (below_a, below_b)] == [False, False], "b.2 may still free a slot"
            b2.leave()
            await asyncio.sleep(2.9)
            assert waits.deadlocks.found == 0, "it may still come back"
            began = loop.time()
            done, _ = await asyncio.wait({below_a, below_b}, return_when=asyncio.FIRST_COMPLETED)
            assert loop.time() - began < 3
            [gave_way] = done
            assert gave_way.result().code == "deadlock"
            assert (waits.deadlocks.by_how["refused"], waits.deadlocks.by_how["confirmed"]) == (0, 1)
            [finding] = [item for item in platform.gateway.findings.of("default") if item.kind == "deadlock"]
            assert finding.evidence["victim"] in (in_a.unit, in_b1.unit)
            if gave_way is below_b:
                b1.answer(in_b1, "done without")
                b1.answer(await b1.next(), "done")
                assert (await below_a).ok
                a.answer(in_a, "done")
            else:
                a.answer(in_a, "done without")
                a.answer(await a.next(), "done")
                assert (await below_b).ok
                b1.answer(in_b1, "done")
            assert [(await call).code for call in (root, one)] == ["", ""]
            assert (await two).code == "outcome_unknown"
            assert waits.deadlocks.resolved == 1
            assert is_empty(platform)

    play(story)


def test_pools_that_wait_for_one_another_cannot_fill_up() -> None:
    """D4: eight units of a ask b, eight of b ask a, all in threads: the one that would close it is refused."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peers(platform, "a", "b", concurrency=8)
            shop = WirePeer(platform, "shop").connect()
            roots = [shop.call(name, "block", f"{name}{number}") for name in "ab" for number in range(8)]
            units = {peer: [await peer.next() for _ in range(8)] for peer in (a, b)}
            below = [(a, unit, child(a, unit, "b", f"x{number}")) for number, unit in enumerate(units[a])]
            below += [(b, unit, child(b, unit, "a", f"y{number}")) for number, unit in enumerate(units[b])]
            await asyncio.sleep(0.1)
            refused = [(peer, unit) for peer, unit, call in below if call.done()]
            assert [call.result().code for _, _, call in below if call.done()] == ["deadlock"]
            serving = [asyncio.ensure_future(serve(peer)) for peer in (a, b)]
            for peer, unit in refused:
                peer.answer(unit, "done without")
            for peer, unit, call in below:
                if (peer, unit) not in refused:
                    assert (await call).ok
                    peer.answer(unit, "done")
            assert [(await root).ok for root in roots] == [True] * 16
            for task in serving:
                task.cancel()
            assert is_empty(platform)

    play(story)


async def serve(peer: WirePeer) -> None:
    while True:
        peer.answer(await peer.next(), "served")


def test_who_joined_a_call_that_would_close_a_circle_goes_on_with_it() -> None:
    """D3, F68: the owner of the key is in a circle, another caller of it is not: he goes on in the owner's place."""

    async def story() -> None:
        async with gate() as platform:
            (b,) = peers(platform, "b")
            a1, a2 = (
                WirePeer(platform, "a", instance=f"a.{number}", skills=SKILLS, concurrency=1) for number in (1, 2)
            )
            shop = WirePeer(platform, "shop").connect()
            roots: list[asyncio.Future[Outcome]] = []
            units = []
            for peer in (a1.connect(), a2.connect()):
                roots.append(shop.call("a", "block", f"o{len(roots)}"))
                units.append(await peer.next())
            roots.append(shop.call("b", "block", "o3"))
            in_b = await b.next()
            assert (await a1.lock("stock", token=units[0].params.token)).ok
            stock = b.lock("stock", token=in_b.params.token)
            await asyncio.sleep(0.1)
            owner, joiner = child(a1, units[0], "b", "x"), child(a2, units[1], "b", "x")
            assert (await owner).code == "deadlock"
            a1.answer(units[0], "done without")
            assert (await stock).ok
            b.answer(in_b, "done")
            b.answer(await b.next(), "done")
            assert (await joiner).ok
            a2.answer(units[1], "done")
            assert [(await root).ok for root in roots] == [True] * 3
            assert is_empty(platform)

    play(story)


@pytest.mark.parametrize("first", ["call", "lock"])
def test_a_cycle_of_a_call_and_a_lock_is_refused(first: str) -> None:
    """D4: one holds the lock and queues for a slot, the other has that slot and wants the lock."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peers(platform, "a", "b")
            shop = WirePeer(platform, "shop").connect()
            roots = shop.call("a", "block", "o1"), shop.call("b", "block", "o2")
            in_a, in_b = await a.next(), await b.next()
            assert (await a.lock("stock", token=in_a.params.token)).ok
            if first == "call":
                waits = child(a, in_a, "b", "o3")
                await asyncio.sleep(0.1)
                refused = await b.lock("stock", token=in_b.params.token)
            else:
                waits = b.lock("stock", token=in_b.params.token)
                await asyncio.sleep(0.1)
                refused = await child(a, in_a, "b", "o3")
            assert refused.code == "deadlock"
            assert asyncio.get_running_loop().time() < 1
            order = ((b, in_b, 1), (a, in_a, 0)) if first == "call" else ((a, in_a, 0), (b, in_b, 1))
            for peer, unit, root in order:
                peer.answer(unit, "done")
                assert (await roots[root]).ok
                if peer is b and first == "call":
                    b.answer(await b.next(), "done")
            assert (await waits).ok
            deadlocks = platform.gateway.waits.deadlocks
            assert (deadlocks.by_how["refused"], deadlocks.resolved) == (1, 1)
            assert is_empty(platform)

    play(story)


def test_locks_that_are_taken_in_the_wrong_order_by_way_of_calls_are_found() -> None:
    """D4, D6: each holds one lock, and a unit that it has called wants the other's: no global order sees that."""

    async def story() -> None:
        async with gate() as platform:
            a, b = peers(platform, "a", "b", concurrency=4)
            shop = WirePeer(platform, "shop").connect()
            roots = [shop.call(name, "ask", name) for name in ("a", "b")]
            in_a, in_b = await a.next(), await b.next()
            assert (await a.lock("left", token=in_a.params.token)).ok
            assert (await b.lock("right", token=in_b.params.token)).ok
            below = child(a, in_a, "b", "x", "ask"), child(b, in_b, "a", "y", "ask")
            in_b2, in_a2 = await b.next(), await a.next()
            waits = b.lock("right", token=in_b2.params.token)
            await asyncio.sleep(0.1)
            refused = await a.lock("left", token=in_a2.params.token)
            assert refused.code == "deadlock"
            a.answer(in_a2, "done without")
            assert (await below[1]).ok
            b.answer(in_b, "done")
            assert (await waits).ok
            b.answer(in_b2, "done")
            assert (await below[0]).ok
            a.answer(in_a, "done")
            assert [(await root).ok for root in roots] == [True, True]
            assert is_empty(platform)

    play(story)


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_cycle_that_is_not_refused_ends_by_its_deadlines(mode: Mode) -> None:
    """I2: observed, it is noted and reported; off, nobody hears of it. Either way the calls go on as they were."""

    async def story() -> None:
        async with gate(settings=switched(mode)) as platform:
            a, b = peers(platform, "a", "b")
            root = WirePeer(platform, "shop").connect().call("a", "block", "o1", timeout_ms=9_000)
            in_a = await a.next()
            first = child(a, in_a, "b", "o1")
            in_b = await b.next()
            second = await child(b, in_b, "a", "o2")
            assert second.code == "deadline_exceeded"
            assert platform.gateway.counters.would["would_deadlock"] == (mode == "observe")
            found = [item.kind for item in platform.gateway.findings.of("default")]
            assert found.count("deadlock") == (mode == "observe")
            assert platform.gateway.waits.deadlocks.by_how["observed_closing"] == (mode == "observe")
            assert platform.gateway.waits.deadlocks.by_how["refused"] == 0, "nobody was refused"
            b.answer(in_b, "done")
            await first
            a.answer(in_a, "done")
            await root
            assert is_empty(platform)

    play(story)
