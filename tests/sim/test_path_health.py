"""Failing targets and failing instances, on the real path and on virtual time."""

from __future__ import annotations

import asyncio

from agentgate.config import Settings
from agentgate.core.presence import PresenceOptions
from agentgate.model import Outcome
from tests.sim.wire_peer import SKILLS, WRITE, WirePeer, gate, play


def test_one_bad_instance_of_three_does_not_open_the_breaker() -> None:
    """B2, DESIGN 4.3: 2 000 reads, 24 in flight, one of three instances raises at once: at least 99 % succeed."""

    async def story() -> None:
        async with gate() as platform:
            agents = [WirePeer(platform, "bank", skills=SKILLS).connect() for _ in range(3)]

            async def serve(agent: WirePeer, *, raises: bool) -> None:
                async with asyncio.TaskGroup() as answers:
                    while True:
                        unit = await agent.next()
                        answers.create_task(answer_later(agent, unit, raises=raises))

            async def answer_later(agent: WirePeer, unit: object, *, raises: bool) -> None:
                if raises:
                    agent.answer(unit, error="handler_error")  # type: ignore[arg-type]  # an Invoked
                else:
                    await asyncio.sleep(0.02)
                    agent.answer(unit, "fine")  # type: ignore[arg-type]  # an Invoked

            states: set[str] = set()
            outcomes: list[Outcome] = []

            async def ask(client: WirePeer, count: int) -> None:
                for _ in range(count):
                    outcomes.append(await client.read("bank"))
                    states.update(
                        item.state for item in platform.gateway.policies.breakers.states(platform.clock.now())
                    )

            async with asyncio.TaskGroup() as group:
                servers = [group.create_task(serve(agent, raises=agent is agents[0])) for agent in agents]
                clients = [WirePeer(platform, f"shop{number}").connect() for number in range(24)]
                async with asyncio.TaskGroup() as load:
                    for number, client in enumerate(clients):
                        load.create_task(ask(client, 83 + (number < 8)))
                for server in servers:
                    server.cancel()
            assert len(outcomes) == 2000
            assert sum(outcome.ok for outcome in outcomes) >= 1980
            assert states == {"closed"}

    play(story)


def test_an_opening_breaker_empties_the_queue_of_its_task_type_only() -> None:
    """B2, B6: what waits for a failing task type is told at once not to retry; other types go on waiting."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=5).connect()
            client = WirePeer(platform, "shop").connect()
            failing = [client.call("bank", "pay", f"bad{n}") for n in range(5)]
            units = [await agent.next() for _ in failing]
            next_in_line = [client.call("bank", "pay", f"next{n}") for n in range(5)]
            waiting = [client.call("bank", "pay", f"waiting{n}") for n in range(3)]
            other = client.call("bank", "ship", "o1")
            await asyncio.sleep(0.1)
            for unit in units:
                agent.answer(unit, error="handler_error")
            outcomes = await asyncio.gather(*waiting)
            for _ in next_in_line:  # they had their slots before the fifth fault was known
                agent.answer(await agent.next(), "paid")
            assert {outcome.code for outcome in outcomes} == {"breaker_open"}
            assert {outcome.error.retry for outcome in outcomes if outcome.error} == {"never"}
            assert {outcome.error.sent for outcome in outcomes if outcome.error} == {False}
            agent.answer(await agent.next(), "shipped")
            assert (await other).ok
            at_once = await client.call("bank", "pay", "later")
            assert at_once.error is not None
            assert (at_once.code, at_once.error.retry_after_ms is not None) == ("breaker_open", True)
            assert agent.invoked.empty()
            assert (await client.call("bank", "pay", "waiting0")).code == "breaker_open"

    play(story)


def test_a_breaker_tries_again_and_closes() -> None:
    """B3: after its time it admits real trials, and good answers close it."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            for number in range(5):
                call = client.call("bank", "pay", f"bad{number}")
                agent.answer(await agent.next(), error="handler_error")
                await call
            assert (await client.call("bank", "pay", "o0")).code == "breaker_open"
            await asyncio.sleep(13)
            for number in range(3):
                call = client.call("bank", "pay", f"trial{number}")
                agent.answer(await agent.next(), "paid")
                assert (await call).ok
            state = {
                item.task_type: item.state for item in platform.gateway.policies.breakers.states(platform.clock.now())
            }
            assert state["pay"] == "closed"

    play(story)


def test_neutral_endings_move_no_breaker() -> None:
    """B4, F40: a business no, malformed output, a throttle and the caller's own mistakes are not faults."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            for number in range(30):
                call = client.call("bank", "pay", f"o{number}")
                code, sent = (("rejected", True), ("malformed_output", True), ("bad_request", False))[number % 3]
                agent.answer(await agent.next(), error=code, sent=sent)
                assert (await call).code == code
            assert platform.gateway.policies.breakers.opened_total == 0

    play(story)


def test_a_throttled_agent_is_left_alone_by_everybody_until_the_time_it_named() -> None:
    """B4, B13: `rate_limited` cools the agent for all callers; it opens nothing."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1", timeout_ms=2000)
            agent.answer(await agent.next(), error="rate_limited", sent=False, retry_after_s=5)
            first = await call
            assert first.error is not None
            assert (first.error.fault, first.error.sent) == ("throttled", False)
            short = await WirePeer(platform, "desk").connect().read("bank", timeout_ms=1000)
            assert short.error is not None
            assert short.code == "overloaded"
            assert 3000 < (short.error.retry_after_ms or 0) <= 5000
            patient = client.read("bank", timeout_ms=20_000)
            unit = await agent.next()
            assert asyncio.get_running_loop().time() >= 5
            agent.answer(unit, "back")
            assert (await patient).ok
            assert platform.gateway.policies.breakers.opened_total == 0

    play(story)


def test_a_hanging_target_opens_its_breaker_although_callers_are_short() -> None:
    """B4, DESIGN 4.1: a cut counts as a fault once the target has had a fair time, not before."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=100).connect()
            client = WirePeer(platform, "shop").connect()
            hasty = [client.call("bank", "pay", f"hasty{n}", timeout_ms=500) for n in range(20)]
            await asyncio.gather(*hasty)
            assert platform.gateway.policies.breakers.opened_total == 0
            fair = [client.call("bank", "pay", f"fair{n}", timeout_ms=4000) for n in range(20)]
            await asyncio.gather(*fair)
            assert platform.gateway.policies.breakers.opened_total > 0
            assert not agent.closed_because

    play(story)


def test_whoever_has_to_start_anew_is_told_so_however_long_it_was_away() -> None:
    """DESIGN 4.1: its connection is forgotten sooner than the instance is given up; it drains still when it is back."""

    async def story() -> None:
        settings = Settings(presence=PresenceOptions(grace_s=20.0))
        async with gate(settings=settings) as platform:
            agent = WirePeer(platform, "bank", skills=(WRITE,), concurrency=1).connect()
            call = WirePeer(platform, "shop").connect().call("bank", "pay", "o1", timeout_ms=2000)
            await call
            await asyncio.sleep(2)
            agent.leave()
            await asyncio.sleep(10)
            agent.connect()
            await asyncio.sleep(0.1)
            assert [told["restart"] for told in agent.told("drain")] == [True, True]
            agent.leave()
            await asyncio.sleep(40)
            agent.connect()
            await asyncio.sleep(0.1)
            assert len(agent.told("drain")) == 2, "it is a new one"

    play(story)
