"""What counts as progress of a unit, and what does not; in virtual time."""

from __future__ import annotations

import asyncio

from tests.sim.late_units import LONG, LOOK, PAY, answer_all, child, forgotten, found, team
from tests.sim.wire_peer import WirePeer, gate, play


def test_slow_work_that_says_how_far_it_is_is_never_touched() -> None:
    """D7: twenty times its time-out, with a new note every five seconds."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "pay", "o1", timeout_ms=100_000)
            unit = await agent.next()
            for number in range(12):
                await asyncio.sleep(5)
                agent.note(unit, f"{number} of 12")
            agent.answer(unit, "paid")
            assert (await call).value == "paid"
            assert agent.told("probe") == agent.told("stop") == []
            assert not found(platform, "stuck_unit")

    play(story)


def test_a_note_before_its_time_out_counts() -> None:
    """D7: what it has shown last before it was late is where its silence begins."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "pay", "o1")
            unit = await agent.next()
            await asyncio.sleep(2.9)
            agent.note(unit, "begun")
            await asyncio.sleep(5.5)
            assert agent.told("probe") == []
            await asyncio.sleep(2)
            assert len(agent.told("probe")) == 1
            agent.answer(unit, "paid")
            assert (await call).ok

    play(story)


def test_a_unit_that_polls_in_vain_is_refused_the_next_poll_then_given_up() -> None:
    """D7, F63: equal calls with equal answers are no progress; it hears so, and may take another way."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            clerk = WirePeer(platform, "clerk", skills=(LOOK,)).connect()
            answering = asyncio.ensure_future(answer_all(clerk, "busy"))
            call = shop.call("agent", "ask", "o1")
            unit = await agent.next()
            codes = []
            while not call.done():
                answer = await child(agent, unit, "clerk", {"order": "o1"})
                codes.append(answer.code)
                await asyncio.sleep(1)
            assert (await call).code == "needs_human"
            refused = codes.index("no_progress")
            assert set(codes[:refused]) == {""}
            assert "no_progress" in codes[refused:]
            assert platform.gateway.counters.woken_units == 1
            agent.answer(unit, "gave up")
            answering.cancel()
            await forgotten(platform)

    play(story)


def test_a_woken_unit_that_takes_another_way_ends_well() -> None:
    """D7: released from its wait, it asks somebody else."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            clerk = WirePeer(platform, "clerk", skills=(LOOK,)).connect()
            answering = asyncio.ensure_future(answer_all(clerk, "busy"))
            call = shop.call("agent", "ask", "o1")
            unit = await agent.next()
            answer = await child(agent, unit, "clerk", 1)
            while answer.ok:
                await asyncio.sleep(0.5)
                answer = await child(agent, unit, "clerk", 1)
            assert answer.code == "no_progress"
            assert (await child(agent, unit, "clerk", 2)).ok
            await asyncio.sleep(5)
            agent.answer(unit, "done another way")
            assert (await call).ok
            answering.cancel()
            await forgotten(platform)

    play(story)


def test_a_poll_that_hangs_is_ended() -> None:
    """D7: a repeated wait is ended where it stands, as if its target had answered."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            clerk = WirePeer(platform, "clerk", skills=(LONG,)).connect()
            call = shop.call("agent", "ask", "o1")
            unit = await agent.next()
            await asyncio.sleep(4.5)
            poll = {"effect": "read", "token": unit.params.token}
            once = agent.call("clerk", "long", "", 1, **poll)
            clerk.answer(await clerk.next(), "busy")
            assert (await once).ok
            again = await agent.call("clerk", "long", "", 1, **poll)
            assert (again.code, again.error is not None and again.error.sent) == ("no_progress", True)
            assert 13 <= asyncio.get_running_loop().time() <= 16
            agent.answer(unit, "done another way")
            assert (await call).ok
            clerk.answer(await clerk.next())
            await forgotten(platform)

    play(story)


def test_a_hundred_equal_reads_within_its_time_are_nothing_to_speak_of() -> None:
    """F64: a status is polled a hundred times in half a minute; nobody is held back, asked after or reported."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            clerk = WirePeer(platform, "clerk", skills=(LOOK,)).connect()
            answering = asyncio.ensure_future(answer_all(clerk, "busy"))
            call = shop.call("agent", "slow", "o1", timeout_ms=60_000)
            unit = await agent.next()
            for _ in range(100):
                assert (await shop.read("clerk", 1)).ok
                await asyncio.sleep(0.3)
            agent.answer(unit, "done")
            assert (await call).ok
            assert platform.gateway.findings.of("default") == []
            answering.cancel()

    play(story)


def test_whoever_waits_for_honest_work_is_left_alone() -> None:
    """D7: the caller's time-out is 3 s, its target works for 40 s and says how far it is."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            worker = WirePeer(platform, "worker", skills=(PAY,)).connect()
            call = shop.call("agent", "ask", "o1", timeout_ms=60_000)
            unit = await agent.next()
            below = agent.call("worker", "pay", "o1", token=unit.params.token, timeout_ms=50_000)
            at_work = await worker.next()
            for number in range(8):
                await asyncio.sleep(5)
                worker.note(at_work, f"{number}")
            worker.answer(at_work, "paid")
            assert (await below).ok
            agent.answer(unit, "done")
            assert (await call).ok
            assert agent.told("probe") == worker.told("probe") == []

    play(story)


def test_whoever_waits_for_a_stuck_unit_gets_on() -> None:
    """D7, D10: the wait of the caller ends with the state; it is not stuck itself."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            worker = WirePeer(platform, "worker", skills=(PAY,)).connect()
            call = shop.call("agent", "ask", "o1")
            unit = await agent.next()
            below = agent.call("worker", "pay", "o1", token=unit.params.token)
            at_work = await worker.next()
            assert (await below).code == "needs_human"
            agent.answer(unit, "a person will look at it")
            assert (await call).ok
            worker.answer(at_work, "paid")
            await forgotten(platform)

    play(story)
