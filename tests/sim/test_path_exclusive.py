"""Exclusive keys on the real path and on virtual time: zombies, restarts, chains (DESIGN 4.3)."""

from __future__ import annotations

import asyncio

from agentgate.adapters.memory import MemoryStore
from agentgate.model import Skill
from agentgate.model.link import UnitReport
from tests.sim.wire_peer import WirePeer, gate, play

SHIP = Skill(task_type="ship", exclusive="business_key")
CANCEL = Skill(task_type="cancel", exclusive="business_key")
LOOK = Skill(task_type="look", effect="read")
SKILLS = (SHIP, CANCEL, LOOK)


def test_work_on_one_object_runs_one_after_the_other() -> None:
    """DESIGN 4.3: all exclusive skills of an agent share the key, in all its processes; other objects go on."""

    async def story() -> None:
        async with gate() as platform:
            one = WirePeer(platform, "depot", skills=SKILLS).connect()
            two = WirePeer(platform, "depot", skills=SKILLS).connect()
            shop, desk = WirePeer(platform, "shop").connect(), WirePeer(platform, "desk").connect()
            first, second = shop.call("depot", "ship", "o1"), desk.call("depot", "cancel", "o1")
            other, read = shop.call("depot", "ship", "o2"), shop.read("depot")
            await asyncio.sleep(0.1)
            units = [*[one.invoked.get_nowait() for _ in range(one.invoked.qsize())]]
            seconds = [two.invoked.get_nowait() for _ in range(two.invoked.qsize())]
            begun = sorted((unit.params.task_type, unit.params.business_key) for unit in (*units, *seconds))
            assert begun == [("look", ""), ("ship", "o1"), ("ship", "o2")]
            for peer, invoked in ((one, units), (two, seconds)):
                for unit in invoked:
                    peer.answer(unit, "done")
            assert [(await call).value for call in (first, other, read)] == ["done"] * 3
            taker = one if not one.invoked.empty() else two
            unit = await taker.next()
            assert unit.params.task_type == "cancel"
            taker.answer(unit, "cancelled")
            assert (await second).value == "cancelled"

    play(story)


def test_a_unit_that_does_not_stop_keeps_its_key() -> None:
    """A zombie still runs: the next call of its key waits for its end, and is refused at its own deadline."""

    async def story() -> None:
        async with gate() as platform:
            depot = WirePeer(platform, "depot", skills=SKILLS).connect()
            shop, desk = WirePeer(platform, "shop").connect(), WirePeer(platform, "desk").connect()
            first = shop.call("depot", "ship", "o1", timeout_ms=1000)
            zombie = await depot.next()
            assert (await first).code == "deadline_exceeded"
            await asyncio.sleep(2)
            assert platform.gateway.policies.slots.outstanding("depot") == 0
            assert (await desk.call("depot", "ship", "o1", timeout_ms=1000)).code == "deadline_exceeded"
            patient = desk.call("depot", "cancel", "o1", timeout_ms=10_000)
            await asyncio.sleep(1)
            assert depot.invoked.empty()
            depot.answer(zombie, "shipped after all")
            depot.answer(await depot.next(), "cancelled")
            assert (await patient).value == "cancelled"

    play(story)


def test_a_key_is_held_over_a_restart_of_the_gate() -> None:
    """What an earlier gate had running is not run beside, before and after its process is back."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            depot = WirePeer(platform, "depot", skills=SKILLS).connect()
            call = WirePeer(platform, "shop").connect().call("depot", "ship", "o1")
            unit = await depot.next()
            await asyncio.sleep(1)
            call.cancel()
            depot.leave()
        async with gate(store, seed=2) as platform:
            other = WirePeer(platform, "depot", skills=SKILLS).connect()
            desk = WirePeer(platform, "desk").connect()
            waits, free = desk.call("depot", "cancel", "o1"), desk.call("depot", "cancel", "o2")
            other.answer(await other.next(), "cancelled")
            assert (await free).ok
            await asyncio.sleep(1)
            depot.platform = platform
            depot.connect(units=(UnitReport(unit=unit.unit, token=unit.params.token, remaining_ms=9000),))
            await asyncio.sleep(1)
            assert other.invoked.empty()
            depot.answer(unit, "shipped")
            await asyncio.sleep(0.1)
            taker = other if not other.invoked.empty() else depot
            taker.answer(await taker.next(), "cancelled")
            assert (await waits).value == "cancelled"

    play(story)


def test_a_key_of_a_process_that_does_not_come_back_is_given_up() -> None:
    """Waiting for a lost unit ends with the recovery time."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            depot = WirePeer(platform, "depot", skills=SKILLS).connect()
            call = WirePeer(platform, "shop").connect().call("depot", "ship", "o1")
            await depot.next()
            call.cancel()
            depot.leave()
        async with gate(store, seed=2) as platform:
            other = WirePeer(platform, "depot", skills=SKILLS).connect()
            began = asyncio.get_running_loop().time()
            waits = WirePeer(platform, "desk").connect().call("depot", "cancel", "o1", timeout_ms=20_000)
            other.answer(await other.next(), "cancelled")
            assert (await waits).ok
            assert 9 < asyncio.get_running_loop().time() - began < 11

    play(story)


def test_a_chain_does_not_wait_for_its_own_key() -> None:
    """D3: work on an object that calls for more exclusive work on it is told so at once, instead of at its deadline."""

    async def story() -> None:
        async with gate() as platform:
            depot = WirePeer(platform, "depot", skills=SKILLS).connect()
            call = WirePeer(platform, "shop").connect().call("depot", "ship", "o1")
            unit = await depot.next()
            refused = await depot.call("depot", "cancel", "o1", None, token=unit.params.token)
            assert refused.error is not None
            assert (refused.code, refused.error.sent) == ("deadlock", False)
            assert "depot.ship(o1): queues for its exclusive key > depot.ship(o1)" in refused.error.detail
            other = depot.call("depot", "cancel", "o2", None, token=unit.params.token)
            depot.answer(await depot.next(), "cancelled")
            assert (await other).ok
            depot.answer(unit, "shipped")
            assert (await call).ok

    play(story)
