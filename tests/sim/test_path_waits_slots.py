"""Slots that are there and not to be had: a retry that avoids one, an instance on trial; in virtual time."""

from __future__ import annotations

import asyncio

from agentgate.app import Platform
from agentgate.core.slots import InstanceState
from agentgate.model import Skill
from tests.sim.wire_peer import WirePeer, gate, play

SKILLS = (Skill(task_type="block"), Skill(task_type="ask", rests=True), Skill(task_type="look", effect="read"))


def peer(platform: Platform, name: str, instance: str, concurrency: int = 1) -> WirePeer:
    return WirePeer(platform, name, instance=instance, skills=SKILLS, concurrency=concurrency).connect()


def standing(platform: Platform, name: str) -> InstanceState:
    states = platform.gateway.policies.slots.states(asyncio.get_running_loop().time())
    [shown] = [item for state in states for item in state.instances if item.name == name]
    return shown


def test_a_retry_takes_the_instance_that_failed_rather_than_wait_for_its_own_root() -> None:
    """D2, B5: the other instance is held by the unit that waits for this very call; the one that failed is idle."""

    async def story() -> None:
        async with gate() as platform:
            b1, b2 = peer(platform, "b", "b.1"), peer(platform, "b", "b.2")
            c = peer(platform, "c", "c.1")
            root = WirePeer(platform, "shop").connect().call("b", "block", "o1", timeout_ms=30_000)
            await asyncio.sleep(0.1)
            own, other = (b1, b2) if b1.invoked.qsize() else (b2, b1)
            in_b = await own.next()
            below = own.call("c", "block", "o1", token=in_b.params.token)
            in_c = await c.next()
            back = c.call("b", "look", "", 1, effect="read", token=in_c.params.token)
            other.answer(await other.next(), error="overloaded", sent=False)
            began = asyncio.get_running_loop().time()
            other.answer(await other.next(), "seen")
            assert (await back).value == "seen"
            assert asyncio.get_running_loop().time() - began < 3
            c.answer(in_c, "done")
            assert (await below).ok
            own.answer(in_b, "done")
            assert (await root).ok
            assert platform.gateway.waits.deadlocks.found == 0

    play(story)


def test_the_one_unit_of_an_instance_on_trial_does_not_wait_for_its_own_place() -> None:
    """D1, D2: on trial it takes one call; who has that place and calls its own agent is told at once."""

    async def story() -> None:
        async with gate() as platform:
            b1, b2 = peer(platform, "b", "b.1", 4), peer(platform, "b", "b.2", 4)
            shop = WirePeer(platform, "shop").connect()
            faults = 0
            while standing(platform, "b.1").standing == "in":
                call = shop.call("b", "block", f"o{(faults := faults + 1)}")
                await asyncio.sleep(0.05)
                serving = b1 if b1.invoked.qsize() else b2
                serving.answer(await serving.next(), **({"error": "handler_error"} if serving is b1 else {"value": 1}))
                await call
                assert faults < 10
            b2.leave()
            await asyncio.sleep(15)
            assert standing(platform, "b.1").standing == "trial"
            root = shop.call("b", "ask", "root")
            unit = await b1.next()
            began = asyncio.get_running_loop().time()
            below = await b1.call("b", "look", "", 1, effect="read", token=unit.params.token)
            assert below.code == "deadlock"
            assert asyncio.get_running_loop().time() - began < 1
            b1.answer(unit, "done without")
            assert (await root).ok

    play(story)
