"""Observe mode (I2): whatever would have been done is said, and nothing is done; real path, virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agentgate import Agent, CallFailed, Context
from agentgate.adapters.memory.store import MemoryStore
from agentgate.config import Settings
from agentgate.config.mechanisms import MECHANISMS
from agentgate.core.chain import ChainOptions
from agentgate.core.policy import Mode
from agentgate.core.rate import RateOptions
from agentgate.core.timeout import TimeoutOptions
from agentgate.errors import StoreBroke
from agentgate.testing import local_gate, run_virtual
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def observed(*mechanisms: str, **options: Any) -> Settings:
    """These mechanisms observed, or all that can be."""
    wanted = mechanisms or [name for name, known in MECHANISMS.items() if "observe" in known.modes]
    modes: dict[str, Mode] = {**Settings().mechanisms, **dict.fromkeys(wanted, "observe")}
    return replace(Settings(mechanisms=modes), **options)


def test_a_taken_key_is_noted_and_runs_all_the_same() -> None:
    """I2, DESIGN 3: a repeat of a key that runs, is done, or has another body goes on without a record; the record
    stays that of the first call.
    """

    async def story() -> None:
        store = MemoryStore()
        async with gate(store, settings=observed("idempotency")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            first, joining, other = (client.call("bank", "pay", "o1", body) for body in (1, 1, 2))
            units = [await agent.next() for _ in range(3)]
            recorded = [unit for unit in units if not unit.params.unrecorded]
            for unit in units:
                agent.answer(unit, "paid first" if unit in recorded else "paid")
            assert [(await call).value for call in (first, joining, other)] == ["paid first", "paid", "paid"]
            for body, value in ((1, "paid again"), (3, "paid otherwise")):
                repeat = client.call("bank", "pay", "o1", body)
                agent.answer(await agent.next(), value)
                outcome = await repeat
                assert (outcome.value, outcome.replayed, outcome.joined) == (value, False, False)
            would = platform.gateway.counters.would
            assert would == {"would_join": 1, "would_conflict": 2, "would_replay": 1}
            spans = await platform.spans.chain("o1")
            notes = [note for span in spans if span.kind == "call" for note in span.notes]
            assert sorted(notes) == ["would_conflict", "would_conflict", "would_join", "would_replay"]
            [record] = (await store.dump()).records
            assert (record.state, record.outcome and record.outcome.value) == ("done", "paid first")
            assert agent.acked == 5

    play(story)


def test_an_observed_ledger_that_fails_holds_nobody_up() -> None:
    """I2: while the store fails or hangs, calls go on without a record, and say so."""

    class Broken(MemoryStore):
        async def lookup(self, keys: Any, now: float) -> Any:
            raise StoreBroke("gone")

    class Hanging(MemoryStore):
        async def lookup(self, keys: Any, now: float) -> Any:
            await asyncio.sleep(60)
            return [None for _ in keys]

    class Refusing(MemoryStore):
        async def claim(self, *_: Any) -> Any:
            raise StoreBroke("gone")

    async def story() -> None:
        for store in (Broken(), Hanging(), Refusing()):
            async with gate(store, settings=observed("idempotency")) as platform:
                agent = WirePeer(platform, "bank", skills=SKILLS).connect()
                client = WirePeer(platform, "shop").connect()
                began = asyncio.get_running_loop().time()
                call = client.call("bank", "pay", "o1")
                agent.answer(await agent.next(), "paid")
                assert (await call).value == "paid"
                assert asyncio.get_running_loop().time() - began < 0.5
                assert platform.gateway.counters.would == {"would_store_down": 1}

    play(story)


def test_an_observed_answer_does_not_wait_for_the_disk() -> None:
    """I2: the record is written, and the caller has its answer before."""

    class Slow(MemoryStore):
        async def change(self, *arguments: Any) -> Any:
            await asyncio.sleep(5)
            return await super().change(*arguments)

    async def story() -> None:
        store = Slow()
        async with gate(store, settings=observed("idempotency")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), "paid")
            await call
            assert asyncio.get_running_loop().time() < 1
            repeat = client.call("bank", "pay", "o1")
            agent.answer(await agent.next(), "paid twice")
            assert (await repeat).value == "paid twice"
            assert platform.gateway.counters.would == {"would_join": 1}
            await asyncio.sleep(10)
            [record] = (await store.dump()).records
            assert record.outcome is not None
            assert record.outcome.value == "paid"

    play(story)


def test_an_observed_limit_of_an_agent_makes_nobody_wait() -> None:
    """I2, B11: calls beyond the limit reach the agent at once, and what would have waited is counted; an agent that is
    not there is no_route as ever.
    """

    async def story() -> None:
        async with gate(settings=observed("concurrency")) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=2).connect()
            client = WirePeer(platform, "shop").connect()
            calls = [client.call("bank", "pay", f"o{number}") for number in range(10)]
            units = [await agent.next() for _ in calls]
            assert platform.gateway.policies.slots.outstanding("bank") == 2
            for unit in units:
                agent.answer(unit, "paid")
            assert {(await call).value for call in calls} == {"paid"}
            assert platform.gateway.counters.would == {"would_queue": 8}
            assert (platform.gateway.policies.slots.outstanding("bank"), len(platform.gateway.units)) == (0, 0)
            assert (await client.read("nobody")).code == "no_route"

    play(story)


def test_with_everything_observed_no_call_is_refused_or_delayed() -> None:
    """I2: at a failing agent, above every limit, each call goes straight to the agent and gets what that answers."""

    async def story() -> None:
        settings = observed(
            rate=RateOptions(rate_per_s=5, burst=5),
            chain=ChainOptions(depth_max=1, calls_max=20),
            timeout=TimeoutOptions(samples_min=5, min_s=0.5, default_s=0.5),
        )
        async with gate(settings=settings) as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=1).connect()
            client = WirePeer(platform, "shop").connect()
            began = asyncio.get_running_loop().time()
            calls = [client.call("bank", "pay", f"o{number % 30}") for number in range(60)]
            units = [await agent.next() for _ in calls]
            assert asyncio.get_running_loop().time() - began < 0.01, "nobody waited at the gate"
            await asyncio.sleep(2)
            agent.answer(units[0], error="rate_limited", sent=False, retry_after_s=30.0)
            agent.answer(units[1], error="overloaded", sent=False)
            for unit in units[2:]:
                agent.answer(unit, error="handler_error")
            assert {(await call).code for call in calls} == {"rate_limited", "overloaded", "handler_error"}
            last = client.call("bank", "pay", "last")
            agent.answer(await agent.next(), "paid")
            assert (await last).value == "paid"
            would = platform.gateway.counters.would
            assert set(would) == {
                "would_pace", "would_join", "would_queue", "would_cool_down", "would_open", "would_cut", "would_retry",
            }  # fmt: skip
            assert would["would_join"] == 30
            assert platform.gateway.counters.retries == 0
            assert platform.gateway.counters.replays == platform.gateway.counters.joins == 0

    play(story)


@pytest.mark.parametrize("times", [2, 40])
def test_agents_of_the_sdk_run_whatever_comes(times: int) -> None:
    """I2: a handler runs for every call, also for equal ones at the same time and beyond its declared concurrency."""
    ran: list[str] = []
    agent = Agent("bank", concurrency=1)

    @agent.handles("pay")
    async def pay(amount: int, ctx: Context) -> str:
        ran.append(ctx.key)
        await asyncio.sleep(1)
        if len(ran) % 2:
            raise RuntimeError("no")
        return "paid"

    async def story() -> None:
        async with local_gate(agent, settings=observed()) as client, asyncio.TaskGroup() as group:
            for number in range(times):
                group.create_task(one(client, f"o{number % 2}"))
        assert len(ran) == times

    async def one(client: Any, key: str) -> None:
        try:
            assert await client.call("bank", "pay", key, 7) == "paid"
        except CallFailed as error:
            assert error.code == "handler_error"  # noqa: PT017 - both ends are right, a refusal is not

    run_virtual(story)
