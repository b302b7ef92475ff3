"""Lost instances, lost connections and a lost gate (DESIGN 4.5), on the real path and on virtual time."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.adapters.memory.store import MemoryStore
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def test_a_lost_instance_leaves_a_write_unknown_and_a_read_retried() -> None:
    """A8, C4, F12, F83: nobody can tell what a lost process did, so a write is not run again silently."""

    async def story() -> None:
        async with gate() as platform:
            one = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            write, read = client.call("bank", "pay", "o1"), client.read("bank")
            await one.next()
            await one.next()
            two = WirePeer(platform, "bank", skills=SKILLS).connect()
            one.leave()
            outcome = await write
            assert outcome.error is not None
            assert (outcome.status, outcome.error.sent, outcome.error.retry) == ("unknown", True, "never")
            two.answer(await two.next(), "seen")
            assert (await read).value == "seen"
            assert (await client.call("bank", "pay", "o1")).code == "outcome_unknown"
            assert two.invoked.empty()

    play(story)


def test_a_check_tells_that_it_happened() -> None:
    """C4, DESIGN 4.2: with a check, an unknown effect becomes the known one, without a second run."""

    async def story() -> None:
        async with gate() as platform:
            one = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "ship", "o1", {"n": 2})
            await one.next()
            two = WirePeer(platform, "bank", skills=SKILLS).connect()
            one.leave()
            check = await two.next()
            assert (check.params.task_type, check.params.payload) == ("check:ship", {"n": 2})
            assert check.params.key == "shop:ship:o1:run"
            two.answer(check, {"parcel": 7})
            assert (await call).value == {"parcel": 7}
            assert (await client.call("bank", "ship", "o1", {"n": 2})).value == {"parcel": 7}

    play(story)


def test_a_check_tells_that_it_did_not_happen() -> None:
    """C4, DESIGN 4.2: the check's null frees the key, and the same call runs again."""

    async def story() -> None:
        async with gate() as platform:
            one = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "ship", "o1")
            await one.next()
            two = WirePeer(platform, "bank", skills=SKILLS).connect()
            one.leave()
            two.answer(await two.next(), None)
            unit = await two.next()
            assert unit.params.task_type == "ship"
            two.answer(unit, "shipped")
            assert (await call).value == "shipped"

    play(story)


def test_every_run_that_got_lost_is_asked_about() -> None:
    """C4, DESIGN 4.2: two losses within the interval between checks are two questions, and neither is left open."""

    async def story() -> None:
        async with gate() as platform:
            instances = [WirePeer(platform, "bank", skills=SKILLS).connect()]
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "ship", "o1")
            for _ in range(2):
                await instances[-1].next()
                instances.append(WirePeer(platform, "bank", skills=SKILLS).connect())
                instances[-2].leave()
                instances[-1].answer(await instances[-1].next(), None)
            unit = await instances[-1].next()
            assert unit.params.task_type == "ship"
            instances[-1].answer(unit, "shipped")
            assert (await call).value == "shipped"

    play(story)


@pytest.mark.parametrize("state", ["running", "finished", "never seen"])
def test_a_cut_connection_loses_nothing(state: str) -> None:
    """C4, C5, G1: after a reconnect what runs rejoins, what finished is settled, what was never seen runs anew."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            unit = await agent.next()
            agent.session.closed()
            await asyncio.sleep(1)
            agent.connect(units=agent.reports(state, unit))
            if state == "running":
                agent.answer(unit, "paid")
            elif state == "never seen":
                anew = await agent.next()
                assert anew.unit != unit.unit
                agent.answer(anew, "paid")
            assert (await call).value == "paid"
            assert agent.invoked.empty()
            assert agent.acked == 1

    play(story)


@pytest.mark.parametrize("state", ["running", "finished", "never seen", "gone"])
def test_a_restarted_gate_asks_the_instances_first(state: str) -> None:
    """G1, C4: what an earlier gate was running is unknown only when its instance does not come back."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            first = client.call("bank", "pay", "o1", {"n": 1})
            unit = await agent.next()
            await asyncio.sleep(1)
            assert not first.done()
        async with gate(store, seed=2) as platform:
            agent.platform = client.platform = platform
            repeat = client.connect().call("bank", "pay", "o1", {"n": 1}, timeout_ms=20_000)
            await asyncio.sleep(2)
            if state == "gone":
                WirePeer(platform, "bank", skills=SKILLS).connect()
                assert (await repeat).code == "outcome_unknown"
                return
            agent.connect(units=agent.reports(state, unit))
            if state == "running":
                await asyncio.sleep(1)
                assert platform.gateway.counters.rejoined_units == 1
                agent.answer(unit, "paid")
            elif state == "never seen":
                agent.answer(await agent.next(), "paid")
            assert (await repeat).value == "paid"
            assert agent.invoked.empty()

    play(story)


def test_a_late_answer_settles_what_was_unknown() -> None:
    """C4: unknown stays unknown only until somebody who knows comes back."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            unit = await agent.next()
            agent.leave()
            assert (await call).status == "unknown"
            agent.connect(units=(agent.finished(unit, "paid"),))
            await asyncio.sleep(0.1)
            assert (await client.call("bank", "pay", "o1")).value == "paid"
            assert agent.acked == 1

    play(story)


def test_calls_to_an_agent_known_before_the_restart_queue_through_it() -> None:
    """A4, G1: a restart of the gate is not an outage of the agents."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            await asyncio.sleep(2)
        async with gate(store, seed=2) as platform:
            agent.platform = platform
            call = WirePeer(platform, "shop").connect().read("bank")
            await asyncio.sleep(2)
            agent.connect()
            agent.answer(await agent.next(), "here again")
            assert (await call).value == "here again"

    play(story)


def test_what_rejoins_is_counted_before_those_who_waited_through_the_restart() -> None:
    """B7, G1, DESIGN 4.5: a full instance that comes back to a restarted gate is full, whoever waits for it."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=2).connect()
            client = WirePeer(platform, "shop").connect()
            running = [client.call("bank", "pay", key) for key in ("o1", "o2")]
            units = [await agent.next() for _ in running]
            await asyncio.sleep(2)
        async with gate(store, seed=2) as platform:
            agent.platform = client.platform = platform
            waiting = client.connect().call("bank", "pay", "o3")
            await asyncio.sleep(1)
            agent.connect(units=tuple(agent.running(unit) for unit in units))
            await asyncio.sleep(1)
            assert agent.invoked.empty()
            agent.answer(units[0], "paid")
            agent.answer(await agent.next(), "paid as well")
            assert (await waiting).value == "paid as well"
            assert len(platform.gateway.units) == 1

    play(story)


def test_a_unit_that_does_not_stop_gives_its_slot_up_and_may_still_settle() -> None:
    """B11, F59: a hung handler does not hold a slot for ever; its late answer still counts for its key."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=2).connect()
            client = WirePeer(platform, "shop").connect()
            hung = client.call("bank", "pay", "o1", timeout_ms=3000)
            unit = await agent.next()
            assert (await hung).code == "deadline_exceeded"
            await asyncio.sleep(1.5)
            assert platform.gateway.policies.slots.outstanding("bank") == 0
            assert platform.gateway.counters.zombies == 1
            agent.answer(unit, "paid late")
            await asyncio.sleep(0.1)
            assert (await client.call("bank", "pay", "o1")).value == "paid late"
            assert agent.told("drain") == []

    play(story)


def test_an_instance_full_of_zombies_is_asked_to_restart() -> None:
    """DESIGN 4.1: as many zombies as places, and the instance drains and restarts."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=2).connect()
            client = WirePeer(platform, "shop").connect()
            calls = [client.call("bank", "pay", f"o{n}", timeout_ms=2000) for n in range(2)]
            await asyncio.gather(*calls)
            await asyncio.sleep(2)
            assert [told["restart"] for told in agent.told("drain")] == [True]
            agent.session.closed()
            agent.connect()
            assert [told["restart"] for told in agent.told("drain")] == [True]
            await asyncio.sleep(0.1)
            assert [told["restart"] for told in agent.told("drain")] == [True, True]

    play(story)


def test_when_the_owner_leaves_the_one_with_most_time_goes_on() -> None:
    """C2, DESIGN 4.2: a joiner takes the queue place over under its own deadline."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=1).connect()
            client = WirePeer(platform, "shop").connect()
            busy = client.call("bank", "pay", "busy", timeout_ms=20_000)
            blocking = await agent.next()
            owner = client.call("bank", "pay", "o1", timeout_ms=1000)
            await asyncio.sleep(0.1)
            behind = client.call("bank", "pay", "o2", timeout_ms=20_000)
            joiner = client.call("bank", "pay", "o1", timeout_ms=20_000)
            assert (await owner).code == "deadline_exceeded"
            agent.answer(blocking, "free")
            await busy
            taken_over = await agent.next()
            assert taken_over.params.business_key == "o1"
            agent.answer(taken_over, "paid")
            assert (await joiner).value == "paid"
            agent.answer(await agent.next(), "paid too")
            assert (await behind).value == "paid too"

    play(story)


def test_a_caller_that_goes_away_takes_its_reads_along_and_leaves_its_writes() -> None:
    """DESIGN 12.3: keyed work goes on when its caller is gone, reads are cancelled down the chain."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            calls = [client.call("bank", "pay", "o1")]
            write = await agent.next()
            calls.append(client.read("bank"))
            read = await agent.next()
            client.leave()
            await asyncio.sleep(4)
            assert [stop["unit"] for stop in agent.told("stop")] == [read.unit]
            agent.answer(write, "paid")
            assert not any(call.done() for call in calls)
            other = WirePeer(platform, "shop").connect()
            assert (await other.call("bank", "pay", "o1")).value == "paid"

    play(story)


def test_a_draining_instance_hands_over_to_the_next() -> None:
    """A6: it finishes what is in hand and takes nothing new; the next instance takes over."""

    async def story() -> None:
        async with gate() as platform:
            one = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            first = client.call("bank", "pay", "o1")
            in_hand = await one.next()
            one.send(method="drain", params={"reason": "deploy"})
            second = client.call("bank", "pay", "o2")
            await asyncio.sleep(1)
            assert one.invoked.empty()
            two = WirePeer(platform, "bank", skills=SKILLS).connect()
            two.answer(await two.next(), "by two")
            one.answer(in_hand, "by one")
            assert ((await first).value, (await second).value) == ("by one", "by two")

    play(story)


def test_a_silent_instance_is_lost() -> None:
    """A8, F56: a half-open connection is found by its silence; nobody waits for ever."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1", timeout_ms=60_000)
            await agent.next()
            agent.fall_silent()
            assert (await call).code == "outcome_unknown"
            assert asyncio.get_running_loop().time() < 12
            assert agent.closed_because

    play(story)


def test_a_stopping_gate_begins_nothing_new() -> None:
    """A3, A6: work that runs may still call; a new call is not begun here, so that it can be sent to the next gate."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            running = client.call("bank", "pay", "o1")
            unit = await agent.next()
            platform.gateway.stop_taking()
            later = client.call("bank", "pay", "o2")
            inner = agent.read("bank", token=unit.params.token)
            agent.answer(await agent.next(), "seen")
            assert (await inner).value == "seen"
            agent.answer(unit, "paid")
            assert (await running).value == "paid"
            await asyncio.sleep(1)
            assert agent.invoked.empty()
            assert not later.done()

    play(story)


def test_a_call_without_a_timeout_does_not_grow_younger_by_being_sent_again() -> None:
    """B7, C5: the gate's own time-out counts from when the call was made, however often its connection was lost."""

    async def story() -> None:
        async with gate() as platform:
            client = WirePeer(platform, "shop").connect()
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            loop = asyncio.get_running_loop()
            began = loop.time()
            outcome = await client.read("bank", age_ms=29_000)
            assert outcome.code == "deadline_exceeded"
            assert loop.time() - began == pytest.approx(1.0, abs=0.1)
            assert (await client.read("bank", age_ms=40_000)).code == "deadline_exceeded"
            assert agent.invoked.qsize() == 1

    play(story)
