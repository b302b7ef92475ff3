"""Units that hang: their processes are asked, their callers answered in their place; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.adapters.memory.store import MemoryStore
from agentgate.core.policy import Mode
from agentgate.gateway.watching import STILL_RUNS
from agentgate.model import Skill
from tests.sim.late_units import LOOK, SKILLS, answer_all, child, forgotten, found, key_of, switched, team
from tests.sim.wire_peer import WirePeer, gate, play


def test_a_stuck_write_needs_a_human_and_still_settles_its_key() -> None:
    """D7, D10, C2: asked, given up, told; a repeat gets the state; its own answer counts whenever it comes."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            loop = asyncio.get_running_loop()
            first, again = shop.call("agent", "pay", "o1"), shop.call("agent", "pay", "o1")
            unit = await agent.next()
            agent.health = {unit.unit: "running"}
            outcome = await first
            assert 9 <= loop.time() <= 12
            assert outcome.error is not None
            assert (outcome.code, outcome.error.sent, outcome.error.retry) == ("needs_human", True, "never")
            assert "no progress for 9." in outcome.error.detail
            assert outcome.error.advice == STILL_RUNS
            assert (await again).code == "needs_human", "whoever joined is not left waiting"
            assert agent.told("probe") == [{"units": [unit.unit]}]
            assert [told["kind"] for told in agent.told("stop")] == ["expire"]
            [finding] = found(platform, "stuck_unit")
            assert (finding.subject, finding.evidence["health"]) == ("agent.pay", "running")
            meanwhile = await shop.call("agent", "pay", "o1")
            assert (meanwhile.code, "running as agent.pay(o1), unit" in str(meanwhile.error)) == ("in_progress", True)
            known = await platform.gateway.known_calls.find(key_of("o1"), loop.time() + 5)
            assert known is not None
            assert known.outcome is not None
            assert known.outcome.code == "needs_human"
            await asyncio.sleep(40)
            seq = agent.answer(unit, "paid")
            await asyncio.sleep(0.1)
            assert agent.acked == seq
            late = await shop.call("agent", "pay", "o1")
            assert (late.value, late.replayed, late.degraded) == ("paid", True, False)
            assert platform.gateway.counters.released_units == {"needs_human": 1}
            await forgotten(platform)

    play(story)


def test_a_unit_that_ends_when_it_is_told_is_not_answered_in_its_place() -> None:
    """D7: the word that its time is over is enough for a handler that looks at `ctx.expired`."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "ship", "o1")
            unit = await agent.next()
            await asyncio.sleep(9.5)
            assert [told["kind"] for told in agent.told("stop")] == ["expire"]
            agent.answer(unit, "shipped in part")
            outcome = await call
            assert (outcome.value, outcome.degraded) == ("shipped in part", False)
            assert agent.invoked.empty(), "the degraded handler was not asked"
            await forgotten(platform)

    play(story)


def test_the_degraded_handler_answers_in_place_of_a_stuck_unit() -> None:
    """F6, D7: callers get its answer, marked; so does a repeat, until the unit itself has answered."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "ship", "o1", {"n": 2})
            unit = await agent.next()
            stand_in = await agent.next()
            assert (stand_in.params.task_type, stand_in.params.payload) == ("degraded:ship", {"n": 2})
            assert (stand_in.params.effect, stand_in.params.key) == ("read", "shop:ship:o1:run")
            agent.answer(stand_in, "will ship later")
            outcome = await call
            assert (outcome.value, outcome.degraded, outcome.replayed) == ("will ship later", True, False)
            again = await shop.call("agent", "ship", "o1", {"n": 2})
            assert (again.value, again.degraded, again.joined) == ("will ship later", True, True)
            other = await shop.call("agent", "ship", "o1", {"n": 3})
            assert other.code == "key_conflict"
            agent.answer(unit, "shipped")
            await asyncio.sleep(0.1)
            late = await shop.call("agent", "ship", "o1", {"n": 2})
            assert (late.value, late.degraded, late.replayed) == ("shipped", False, True)
            spans = await platform.spans.chain("o1", 100, "default")
            marked = [span.task_type for span in spans if span.kind == "call" and span.degraded]
            assert marked == ["ship", "ship"]
            assert platform.gateway.counters.released_units == {"degraded": 1}
            await forgotten(platform)

    play(story)


@pytest.mark.parametrize("busy", [False, True])
def test_an_agent_with_one_place_is_asked_before_it_has_to_start_anew(busy: bool) -> None:
    """F6, D7: the stuck unit would fill it, so it drains, but not before its degraded handler has answered."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = (
                WirePeer(platform, "agent", skills=SKILLS, concurrency=1),
                WirePeer(platform, "shop").connect(),
            )
            agent.connect().health = {}
            call = shop.call("agent", "ship", "o1")
            stuck = await agent.next()
            after = shop.call("agent", "pay", "o2") if busy else None
            if after is not None:
                agent.answer(await agent.next(), "paid")
                assert (await after).ok
            stand_in = await agent.next()
            assert stand_in.params.task_type == "degraded:ship"
            assert agent.told("drain") == []
            agent.answer(stand_in, "will ship later")
            outcome = await call
            assert (outcome.value, outcome.degraded) == ("will ship later", True)
            await asyncio.sleep(0.1)
            assert len(agent.told("drain")) == 1
            agent.answer(stuck, "shipped")
            await forgotten(platform)

    play(story)


def test_nobody_waits_for_a_degraded_answer_but_the_gate() -> None:
    """B11: a unit that has only begun the call goes on, and so keeps its place while the degraded handler is asked."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            asking = WirePeer(
                platform, "asking", skills=(Skill(task_type="ask", rests=True, timeout_s=60.0),)
            ).connect()
            root = shop.call("asking", "ask", "o1", timeout_ms=60_000)
            unit = await asking.next()
            begun = asking.call("agent", "ship", "o1", token=unit.params.token, awaited=False, timeout_ms=50_000)
            stuck = await agent.next()
            stand_in = await agent.next()
            assert (len(platform.gateway.resting), len(platform.gateway.policies.graph)) == (0, 0)
            agent.answer(stand_in, "will ship later")
            assert (await begun).degraded
            agent.answer(stuck, "shipped")
            asking.answer(unit, "done")
            assert (await root).ok
            spans = {span.span_id: span for span in await platform.spans.chain("o1", 100, "default")}
            [asked] = [span for span in spans.values() if (span.kind, span.task_type) == ("call", "degraded:ship")]
            assert spans[asked.parent_id].task_type == "ship"
            await forgotten(platform)

    play(story)


@pytest.mark.parametrize("error", ["handler_error", ""])
def test_a_degraded_handler_that_fails_leaves_the_call_to_a_human(error: str) -> None:
    """F6, D10: raised, or hanging itself, it has one time-out of the skill; then the state is said."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            loop = asyncio.get_running_loop()
            call = shop.call("agent", "ship", "o1")
            unit = await agent.next()
            await agent.next()
            serving = loop.create_task(fail(agent, error)) if error else None
            assert (await call).code == "needs_human"
            assert loop.time() < 17
            if serving is not None:
                serving.cancel()
            agent.answer(unit, "shipped")
            await asyncio.sleep(5)

    async def fail(agent: WirePeer, error: str) -> None:
        while True:
            agent.answer(await agent.next(), error=error)

    play(story)


def test_a_key_whose_stuck_unit_is_lost_is_unknown() -> None:
    """D7, C9: the degraded answer was no answer of the effect; when the process dies, nobody can tell."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "ship", "o1")
            await agent.next()
            agent.answer(await agent.next(), "later")
            assert (await call).degraded
            agent.leave()
            await asyncio.sleep(10)
            assert (await shop.call("agent", "ship", "o1")).code == "outcome_unknown"
            await forgotten(platform)

    play(story)


def test_a_blocked_event_loop_is_reported_and_told_apart() -> None:
    """D7, F82: its units get twice the time of a stuck one; what ends by then was never given up."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "pay", "o1")
            unit = await agent.next()
            agent.lag_ms, agent.health = 5_000.0, {unit.unit: "waiting"}
            await asyncio.sleep(11)
            assert not call.done(), "a stuck one would have been given up by now"
            [finding] = found(platform, "blocked_loop")
            assert (finding.subject, finding.count) == ("agent", 1)
            assert (finding.evidence["lag_s"], finding.evidence["units"]) == (5.0, ["pay(o1)"])
            assert not finding.evidence["blocks"], "it stands in line, and nobody else is known"
            agent.answer(unit, "paid")
            assert (await call).value == "paid"
            assert not found(platform, "stuck_unit")

    play(story)


def test_who_stands_in_line_behind_a_blocked_loop_is_not_called_stuck() -> None:
    """D7, F82: what blocks is named; the others are given up as ever, without an advice of their own."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            agent.lag_ms = 60_000.0
            calls, units = [], []
            for key in ("o1", "o2", "o3"):
                calls.append(shop.call("agent", "pay", key))
                units.append(await agent.next())
                await asyncio.sleep(0.1)
            agent.health = {units[2].unit: "waiting"}
            assert [(await call).code for call in calls] == ["needs_human"] * 3
            [finding] = found(platform, "blocked_loop")
            assert finding.evidence["blocks"] == "one of 2 at work, the oldest is pay(o1)"
            assert [stuck.evidence["business_key"] for stuck in found(platform, "stuck_unit")] == ["o1"]
            for unit in units:
                agent.answer(unit, "paid")

    play(story)


def test_a_loop_that_stays_blocked_does_not_hold_its_callers() -> None:
    """D7, D10: 6 s until it is asked, 6 s more."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            agent.lag_ms = 60_000.0
            call = shop.call("agent", "pay", "o1")
            unit = await agent.next()
            assert (await call).code == "needs_human"
            assert 12 <= asyncio.get_running_loop().time() <= 15
            agent.answer(unit, "paid")

    play(story)


def test_a_process_that_does_not_know_the_question_is_alive() -> None:
    """D7: an SDK of another language may answer that there is no such method; its beats tell of the loop."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            agent.health = None
            call = shop.call("agent", "pay", "o1")
            unit = await agent.next()
            assert (await call).code == "needs_human"
            assert platform.gateway.counters.protocol_errors == 0
            agent.answer(unit, "paid")

    play(story)


def test_a_silent_process_is_lost_by_the_rules_of_presence() -> None:
    """A8, D7: no beat, no answer: its instance is gone after 9 s, and its unit with it."""

    async def story() -> None:
        async with gate() as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "pay", "o1")
            await agent.next()
            await asyncio.sleep(5)
            agent.fall_silent()
            assert (await call).code == "outcome_unknown"
            assert not found(platform, "stuck_unit")
            await forgotten(platform)

    play(story)


def test_a_read_that_hangs_is_the_retry_loops() -> None:
    """DESIGN 4.1: it is cut and tried again; one that is not cut (time-outs observed) is only reported."""

    async def story() -> None:
        async with gate(settings=switched("enforce", dynamic_timeout="observe")) as platform:
            agent, shop = team(platform)
            call = shop.read("agent", timeout_ms=20_000)
            unit = await agent.next()
            assert (await call).code == "deadline_exceeded"
            assert [finding.subject for finding in found(platform, "stuck_unit")] == ["agent.look"]
            assert platform.gateway.counters.released_units == {}
            agent.answer(unit, "late")

    play(story)


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_write_is_released_too_where_its_key_binds_nobody(mode: Mode) -> None:
    """D7: the ledger is off, so there is no flight, or only observed; its caller is answered all the same."""

    async def story() -> None:
        async with gate(settings=switched("enforce", idempotency=mode)) as platform:
            agent, shop = team(platform)
            call = shop.call("agent", "ship", "o1")
            unit = await agent.next()
            agent.answer(await agent.next(), "later")
            outcome = await call
            assert (outcome.value, outcome.degraded) == ("later", True)
            agent.answer(unit, "shipped")
            await forgotten(platform)

    play(story)


def test_after_a_restart_of_the_gate_a_stuck_unit_is_given_up_again() -> None:
    """D7, C4: what it had said before, and the payload, went with the gate; the key did not."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            agent, shop = team(platform)
            before = shop.call("agent", "ship", "o1", timeout_ms=100_000)
            unit = await agent.next()
            agent.leave()
        async with gate(store) as platform:
            agent.platform = shop.platform = platform
            agent.connect(units=(agent.running(unit),))
            shop.connect()
            again = shop.call("agent", "ship", "o1", timeout_ms=50_000)
            assert (await again).code == "needs_human"
            assert (await before).code == "cancelled", "its gate is gone"
            agent.answer(unit, "shipped")
            await forgotten(platform)

    play(story)


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_switched_off_or_observed_nobody_is_given_up(mode: Mode) -> None:
    """I2: observed, the finding comes and the span says what would have been done; off, nothing happens."""

    async def story() -> None:
        async with gate(settings=switched(mode)) as platform:
            agent, shop = team(platform)
            clerk = WirePeer(platform, "clerk", skills=(LOOK,)).connect()
            answering = asyncio.ensure_future(answer_all(clerk, "busy"))
            call, polls = shop.call("agent", "pay", "o1"), shop.call("agent", "ask", "o2")
            unit, poller = await agent.next(), await agent.next()
            for _ in range(25):
                assert (await child(agent, poller, "clerk", 1)).ok
                await asyncio.sleep(1)
            agent.answer(unit, "paid")
            agent.answer(poller, "done")
            assert [(await call).value, (await polls).value] == ["paid", "done"]
            observed = mode == "observe"
            assert len(found(platform, "stuck_unit")) == 2 * observed
            assert platform.gateway.counters.would["would_release"] == 2 * observed
            await asyncio.sleep(1)
            spans = await platform.spans.chain("o1", 100, "default")
            assert [span.notes for span in spans if span.kind == "call"] == [("would_release",) * observed]
            answering.cancel()

    play(story)
