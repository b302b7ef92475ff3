"""Every mechanism switched off, and observe mode (I2), on the real path and on virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.policy import Mode
from agentgate.core.rate import RateOptions
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play

SWITCHES = (
    "tracing",
    "rate_limit",
    "chain_guard",
    "idempotency",
    "cool_down",
    "circuit_breaker",
    "dynamic_timeout",
    "retry",
    "wait_graph",
    "watchdog",
)


def switched(mechanism: str, mode: Mode, **others: Mode) -> Settings:
    """All defaults but this switch, and perhaps others."""
    return Settings(mechanisms={**default_modes(), mechanism: mode, **others})


@pytest.mark.parametrize("mechanism", SWITCHES)
def test_a_call_passes_with_one_mechanism_off(mechanism: str) -> None:
    """I2: mechanisms are switched one by one, and the others go on working."""

    async def story() -> None:
        async with gate(settings=switched(mechanism, "off")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            write = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), "paid")
            assert (await write).value == "paid"
            read = client.read("bank")
            agent.answer(await agent.next(), "seen")
            assert (await read).value == "seen"

    play(story)


def test_idempotency_off_runs_a_repeat_again() -> None:
    """I2, DESIGN 8: off is no look-up and no claim; a write is still not run beside itself after a time-out."""

    async def story() -> None:
        async with gate(settings=switched("idempotency", "off")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            for _ in range(2):
                call = client.call("bank", "pay", "o1", timeout_ms=20_000)
                unit = await agent.next()
                await asyncio.sleep(12)
                assert agent.invoked.empty()
                agent.answer(unit, "paid")
                assert not (await call).replayed

    play(story)


@pytest.mark.parametrize("mode", ["off", "observe"])
def test_a_lost_run_without_a_record_is_not_run_again(mode: Mode) -> None:
    """C4, I2: when the instance of a write is lost and the ledger knows nothing of it, nobody can tell, and it says
    so; observed, a run that has a record is asked about as ever.
    """

    async def story() -> None:
        async with gate(settings=switched("idempotency", mode)) as platform:
            one = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            calls = [client.call("bank", "ship", "o1") for _ in range(2)]
            units = [await one.next() for _ in calls]
            assert {unit.params.unrecorded for unit in units} == ({True} if mode == "off" else {True, False})
            two = WirePeer(platform, "bank", skills=SKILLS).connect()
            one.leave()
            if mode == "observe":
                check = await two.next()
                assert check.params.task_type == "check:ship"
                two.answer(check, "shipped")
                assert (await calls[0]).value == "shipped"
            codes = [(await call).code for call in calls]
            assert codes == [("outcome_unknown" if mode == "off" else ""), "outcome_unknown"]
            assert two.invoked.empty()

    play(story)


def test_retry_off_is_one_attempt() -> None:
    """I2, DESIGN 8: off is one attempt."""

    async def story() -> None:
        async with gate(settings=switched("retry", "off")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.read("bank")
            agent.answer(await agent.next(), error="handler_error")
            assert (await call).code == "handler_error"
            assert platform.gateway.counters.retries == 0

    play(story)


def test_tracing_off_leaves_no_span() -> None:
    """I2: what is switched off costs nothing."""

    async def story() -> None:
        async with gate(settings=switched("tracing", "off")) as platform:
            client = WirePeer(platform, "shop").connect()
            assert (await client.read("nobody")).code == "no_route"
            assert await platform.spans.chain("nobody") == []

    play(story)


def test_observing_the_breaker_says_what_it_would_do() -> None:
    """I2: in observe mode the calls go on, and the span and a counter say what would have been done."""

    async def story() -> None:
        async with gate(settings=switched("circuit_breaker", "observe")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            for number in range(8):
                call = client.call("bank", "pay", f"o{number}")
                agent.answer(await agent.next(), error="handler_error")
                assert (await call).code == "handler_error"
            assert platform.gateway.counters.would["would_open"] > 0
            spans = await platform.spans.chain("o7")
            assert any("would_open" in span.notes for span in spans)

    play(story)


def test_observing_the_rate_lets_everything_pass() -> None:
    """I2, B1: a sender above its rate is noted, not paced."""

    async def story() -> None:
        settings = replace(switched("rate_limit", "observe"), rate=RateOptions(rate_per_s=1, burst=1))
        async with gate(settings=settings) as platform:
            client = WirePeer(platform, "shop").connect()
            outcomes = await asyncio.gather(*[client.read("nobody") for _ in range(5)])
            assert {outcome.code for outcome in outcomes} == {"no_route"}
            assert asyncio.get_running_loop().time() < 0.1
            assert sum(platform.gateway.counters.would.values()) == 4

    play(story)


def test_enforcing_the_rate_paces() -> None:
    """B1: a sender above its rate waits for its turn, and is refused when its turn would come too late."""

    async def story() -> None:
        settings = replace(Settings(), rate=RateOptions(rate_per_s=1, burst=1))
        async with gate(settings=settings) as platform:
            client = WirePeer(platform, "shop").connect()
            calls = [client.read("nobody", timeout_ms=2500) for _ in range(5)]
            codes = [outcome.code for outcome in await asyncio.gather(*calls)]
            assert codes == ["no_route", "no_route", "no_route", "rate_limited", "rate_limited"]
            assert asyncio.get_running_loop().time() == pytest.approx(2, abs=0.01)

    play(story)


def test_observing_retries_makes_none_and_says_so() -> None:
    """I2: the first attempt's outcome is the call's; the note says that another would have followed."""

    async def story() -> None:
        async with gate(settings=switched("retry", "observe")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.read("bank")
            agent.answer(await agent.next(), error="handler_error")
            assert (await call).code == "handler_error"
            counters = platform.gateway.counters
            assert (counters.retries, counters.would["would_retry"]) == (0, 1)
            rejected = client.read("bank")
            agent.answer(await agent.next(), error="rejected")
            assert (await rejected).code == "rejected"
            assert counters.would["would_retry"] == 1

    play(story)


def test_observing_the_timeout_cuts_nothing() -> None:
    """I2: the limit is learnt and noted, and only the call's deadline cuts; an attempt that never answers is learnt
    from as if it had been cut.
    """

    async def story() -> None:
        async with gate(settings=switched("dynamic_timeout", "observe", watchdog="off")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            for number in range(60):
                call = client.call("bank", "pay", f"o{number}")
                agent.answer(await agent.next(), "paid")
                await call
                await asyncio.sleep(0.5)
            assert platform.gateway.policies.timeouts.p95_s("bank", "pay") is not None
            slow = client.call("bank", "pay", "slow")
            unit = await agent.next()
            await asyncio.sleep(20)
            agent.answer(unit, "paid")
            assert (await slow).value == "paid"
            counters = platform.gateway.counters
            assert (counters.would["would_cut"], counters.late_answers) == (1, 0)
            spans = await platform.spans.chain("slow")
            assert [span.notes for span in spans if span.kind == "call"] == [("would_cut",)]
            hanging = client.call("bank", "pay", "never", timeout_ms=15_000)
            unit = await agent.next()
            assert (await hanging).code == "deadline_exceeded"
            agent.answer(unit, "paid")
            assert (counters.would["would_cut"], counters.late_answers) == (2, 1)

    play(story)


def test_observing_the_cool_down_lets_everybody_go_on() -> None:
    """I2, B3: an agent that asks for time for everybody is called all the same, and the calls are noted."""

    async def story() -> None:
        async with gate(settings=switched("cool_down", "observe")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            first = client.call("bank", "pay", "o1", timeout_ms=2000)
            agent.answer(await agent.next(), error="rate_limited", sent=False, retry_after_s=60.0)
            assert not (await first).ok
            second = client.call("bank", "pay", "o2", timeout_ms=2000)
            agent.answer(await agent.next(), "paid")
            assert (await second).value == "paid"
            assert platform.gateway.counters.would["would_cool_down"] == 1

    play(story)
