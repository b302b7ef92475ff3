"""What follows an attempt (DESIGN 4.1), on the real path: gate, ledger and units, on virtual time."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tests.sim.wire_peer import SKILLS, WRITE, WirePeer, gate, play


def test_a_repeat_is_answered_from_the_ledger() -> None:
    """C2: the target does not notice a repeated key."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            first = client.call("bank", "pay", "o1", {"n": 1})
            seq = agent.answer(await agent.next(), {"paid": 1})
            assert (await first).value == {"paid": 1}
            again = await client.call("bank", "pay", "o1", {"n": 1})
            assert (again.value, again.replayed) == ({"paid": 1}, True)
            assert again.first_seen_at is not None
            assert again.key == "shop:pay:o1:run"
            assert agent.invoked.empty()
            assert agent.acked == seq

    play(story)


def test_concurrent_repeats_run_once() -> None:
    """C2, F07: fifty calls of one key are one run and fifty equal answers."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            calls = [client.call("bank", "pay", "o1", {"n": 1}) for _ in range(50)]
            unit = await agent.next()
            await asyncio.sleep(1)
            assert agent.invoked.empty()
            agent.answer(unit, "paid")
            outcomes = await asyncio.gather(*calls)
            assert {outcome.value for outcome in outcomes} == {"paid"}
            assert sum(outcome.joined for outcome in outcomes) == 49

    play(story)


def test_another_body_is_a_conflict_and_the_order_of_keys_is_not() -> None:
    """C2, F09: the same key with another body is refused, while it runs and afterwards."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            first = client.call("bank", "pay", "o1", {"n": 1, "to": "x"})
            unit = await agent.next()
            assert (await client.call("bank", "pay", "o1", {"n": 1.0, "to": "x"})).code == "key_conflict"
            assert (await client.call("bank", "pay", "o1", {"n": 1, "to": "x"}, join=False)).code == "in_progress"
            agent.answer(unit, "paid")
            await first
            assert (await client.call("bank", "pay", "o1", {"to": "x", "n": 1})).value == "paid"
            conflict = await client.call("bank", "pay", "o1", {"n": 2})
            assert conflict.error is not None
            assert (conflict.code, conflict.error.sent, conflict.error.retry) == ("key_conflict", False, "never")

    play(story)


def test_a_write_that_times_out_is_waited_for() -> None:
    """C4, F03: after the attempt's time-out no second run begins; the late answer is the answer."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            unit = await agent.next()
            await asyncio.sleep(15)  # the default time-out is 10 s
            assert agent.invoked.empty()
            assert agent.told("stop") == []
            agent.answer(unit, "paid")
            assert (await call).value == "paid"
            assert platform.gateway.counters.retries == 0
            assert platform.gateway.counters.late_answers == 1

    play(story)


def test_a_write_beyond_its_deadline_still_settles_its_key() -> None:
    """C4, B7: the caller is told the truth at its deadline; the late answer is there for the repeat."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1", timeout_ms=3000)
            unit = await agent.next()
            outcome = await call
            assert outcome.error is not None
            assert (outcome.code, outcome.error.sent) == ("deadline_exceeded", True)
            assert asyncio.get_running_loop().time() <= 3.1
            await asyncio.sleep(0.1)
            assert [(stop["unit"], stop["kind"]) for stop in agent.told("stop")] == [(unit.unit, "expire")]
            repeat = client.call("bank", "pay", "o1", timeout_ms=3000)
            await asyncio.sleep(1)
            agent.answer(unit, "paid after all")
            assert (await repeat).value == "paid after all"
            assert (await client.call("bank", "pay", "o1")).replayed
            assert agent.invoked.empty()

    play(story)


def test_a_read_that_times_out_is_retried_elsewhere_and_the_first_answer_wins() -> None:
    """B5, DESIGN 4.1: a read may run twice; whichever answers first is the answer."""

    async def story() -> None:
        async with gate() as platform:
            one = WirePeer(platform, "bank", skills=SKILLS).connect()
            two = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.read("bank", timeout_ms=25_000)
            await asyncio.sleep(11.5)
            slow, other = (one, two) if not one.invoked.empty() else (two, one)
            first, second = await slow.next(), await other.next()
            assert slow.told("stop")[0]["kind"] == "cancel"
            slow.answer(first, "late but first")
            assert (await call).value == "late but first"
            await asyncio.sleep(0.1)
            assert other.told("stop")[0]["unit"] == second.unit

    play(story)


def test_try_later_frees_the_key_and_is_tried_again() -> None:
    """B5: nothing happened, so the same call runs again after the time the handler asked for."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), error="overloaded", sent=False, retry_after_s=3)
            asked = asyncio.get_running_loop().time()
            unit = await agent.next()
            assert asyncio.get_running_loop().time() - asked >= 3
            assert unit.params.attempt == 2
            agent.answer(unit, "paid")
            assert (await call).value == "paid"
            assert platform.gateway.policies.breakers.opened_total == 0

    play(story)


def test_try_later_without_end_is_overloaded_and_leaves_the_key_free() -> None:
    """B5: three attempts at most; then the caller is told, and may come again."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            for _ in range(3):
                agent.answer(await agent.next(), error="overloaded", sent=False)
            outcome = await call
            assert outcome.error is not None
            assert (outcome.code, outcome.error.retry, outcome.error.sent) == ("overloaded", "after", False)
            again = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), "paid")
            assert (await again).value == "paid"

    play(story)


def test_a_write_that_raised_is_final_and_again_runs_it_anew() -> None:
    """B5, C2: a raised error of a write is stored; only `again` runs it once more."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), error="handler_error", detail="boom")
            assert (await call).code == "handler_error"
            stored = await client.call("bank", "pay", "o1")
            assert (stored.code, stored.replayed) == ("handler_error", True)
            anew = client.call("bank", "pay", "o1", again=True)
            agent.answer(await agent.next(), "paid")
            assert (await anew).value == "paid"
            assert (await client.call("bank", "pay", "o1", again=True)).replayed

    play(story)


def test_reads_and_repeatable_skills_that_raise_are_retried() -> None:
    """B5, DESIGN 4.1: what does no harm twice is tried again, at most three times."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            for task_type, effect in (("look", "read"), ("tag", "write")):
                call = client.call("bank", task_type, "o1", effect=effect)
                for _ in range(3):
                    agent.answer(await agent.next(), error="handler_error")
                assert (await call).code == "handler_error"
            once_more = client.call("bank", "tag", "o1")
            agent.answer(await agent.next(), "tagged")
            assert (await once_more).value == "tagged"

    play(story)


def test_a_business_no_is_final() -> None:
    """B5: a business error is never retried, and is the answer for every repeat."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), error="rejected", detail="no money")
            outcome = await call
            assert outcome.error is not None
            assert (outcome.code, outcome.error.fault, outcome.error.detail) == ("rejected", "rejected", "no money")
            assert (await client.call("bank", "pay", "o1")).replayed

    play(story)


def test_an_answer_that_does_not_fit_its_schema_is_malformed() -> None:
    """B4: output that fails the declared schema is not taken, and moves no breaker."""

    async def story() -> None:
        skill = replace(WRITE, output_schema={"type": "object", "required": ["receipt"]})
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=(skill,)).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), {"paid": True})
            outcome = await call
            assert outcome.error is not None
            assert (outcome.code, outcome.error.fault) == ("malformed_output", "malformed")
            assert "receipt" in outcome.error.detail

    play(story)


def test_an_agent_cannot_speak_with_the_gates_words() -> None:
    """B4, B6: a code that only the gate may use counts as an error of the handler."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), error="breaker_open")
            assert (await call).code == "handler_error"

    play(story)
