"""Quotas (B12) on the real path and on virtual time: what is charged, to whom, and what is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.quota import QuotaLimit, QuotaOptions, TaskCost
from agentgate.model import Call, Outcome, Skill
from tests.sim.wire_peer import SKILLS, Invoked, WirePeer, gate, play

HEAVY = Skill(task_type="render", effect="read", cost=20.0)


def limited(*limits: QuotaLimit, costs: tuple[TaskCost, ...] = ()) -> Settings:
    return Settings(quota=QuotaOptions(limits=limits, costs=costs))


def remaining(platform: Platform, user: str = "shop") -> float:
    """What is left of the first limit for a user's payments at the bank."""
    asked = Call(id="", target="bank", agent="bank", task_type="pay", user=user)
    return platform.gateway.policies.quotas.standing(asked, platform.clock.now())[0].remaining


async def serve(agent: WirePeer) -> None:
    """Render for five seconds, answer anything else in a tenth of one; until cancelled."""

    async def work(unit: Invoked) -> None:
        await asyncio.sleep(5.0 if unit.params.task_type == "render" else 0.1)
        agent.answer(unit, "done")

    async with asyncio.TaskGroup() as group:
        while True:
            group.create_task(work(await agent.next()))


async def light_beside_heavy(settings: Settings) -> tuple[float, int]:
    """How long a light call takes beside twenty heavy ones at four slots, and how many of those were refused."""
    async with gate(settings=settings) as platform:
        bank = WirePeer(platform, "bank", skills=(*SKILLS, Skill(task_type="render", effect="read")), concurrency=4)
        server = asyncio.get_running_loop().create_task(serve(bank.connect()))
        shop = WirePeer(platform, "shop").connect()
        heavy = [shop.call("bank", "render", effect="read", timeout_ms=60_000) for _ in range(20)]
        began = asyncio.get_running_loop().time()
        assert (await shop.read("bank")).ok
        took_s = asyncio.get_running_loop().time() - began
        codes = [(await call).code for call in heavy]
        server.cancel()
        return took_s, codes.count("quota_exhausted")


def test_what_runs_is_charged_and_a_repeat_is_not() -> None:
    """B12, C2: a call that was sent costs its units once; repeats that replay or join cost nothing."""

    async def story() -> None:
        async with gate(settings=limited(QuotaLimit(user="*", units=10, per_s=60))) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            first, joined = shop.call("bank", "pay", "o1"), shop.call("bank", "pay", "o1")
            bank.answer(await bank.next(), "paid")
            assert [(await call).value for call in (first, joined)] == ["paid", "paid"]
            assert (await shop.call("bank", "pay", "o1")).replayed
            assert remaining(platform) == 9
            rejected = shop.call("bank", "pay", "o2")
            bank.answer(await bank.next(), error="rejected")
            assert (await rejected).code == "rejected"
            assert remaining(platform) == 8

    play(story)


def test_what_is_not_sent_costs_nothing() -> None:
    """B12: a refusal by a later stage, and a promise that nothing happened, give everything back."""

    async def story() -> None:
        async with gate(settings=limited(QuotaLimit(user="*", units=10, per_s=60))) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            assert (await shop.read("nobody")).code == "no_route"
            later = shop.call("bank", "pay", "o1", timeout_ms=1000)
            bank.answer(await bank.next(), error="overloaded", sent=False, retry_after_s=60)
            assert not (await later).ok
            assert remaining(platform) == 10

    play(story)


def test_a_caller_that_leaves_pays_for_what_was_sent() -> None:
    """B12: leaving is no way around the quota; who leaves before anything was sent pays nothing."""

    async def story() -> None:
        async with gate(settings=limited(QuotaLimit(user="*", units=10, per_s=60))) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS, concurrency=1).connect()
            shop = WirePeer(platform, "shop").connect()
            running, queued = shop.call("bank", "pay", "o1"), shop.call("bank", "pay", "o2")
            await bank.next()
            for number, call in ((1, running), (2, queued)):
                shop.send(method="cancel", params={"id": f"{shop.instance}-call-{number}"})
                assert (await call).code == "cancelled"
            assert remaining(platform) == 9

    play(story)


def test_the_user_pays_for_its_whole_chain() -> None:
    """B12: what agents call on the way counts for the user of the root, not for the agents."""

    async def story() -> None:
        async with gate(settings=limited(QuotaLimit(user="*", units=2, per_s=60))) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            call = shop.call("bank", "pay", "o1", user="carol")
            parent = await bank.next()
            below = bank.read("bank", token=parent.params.token)
            bank.answer(await bank.next(), "seen")
            assert (await below).ok
            refused = await bank.read("bank", token=parent.params.token)
            assert (refused.code, "carol" in refused.error.detail) == ("quota_exhausted", True)  # type: ignore[union-attr]  # it was refused
            bank.answer(parent, "paid")
            assert (await call).ok
            assert (remaining(platform, "carol"), remaining(platform, "bank")) == (0, 2)

    play(story)


def test_the_operators_cost_comes_before_the_agents() -> None:
    """B12: a skill says what it costs, unless the operator knows better."""

    async def story() -> None:
        async def refusals(settings: Settings) -> list[str]:
            async with gate(settings=settings) as platform:
                artist = WirePeer(platform, "artist", skills=(HEAVY,)).connect()
                shop = WirePeer(platform, "shop").connect()
                calls = [shop.call("artist", "render", effect="read") for _ in range(4)]
                await asyncio.sleep(0.1)
                while not artist.invoked.empty():
                    artist.answer(await artist.next(), "drawn")
                return [(await call).code for call in calls]

        limit = QuotaLimit(task_type="render", units=50, per_s=60)
        assert await refusals(limited(limit)) == ["", "", "quota_exhausted", "quota_exhausted"]
        assert await refusals(limited(limit, costs=(TaskCost(task_type="render", units=50),))) == [
            "",
            *["quota_exhausted"] * 3,
        ]

    play(story)


def test_light_calls_are_not_starved_by_heavy_ones() -> None:
    """B12: with so many heavy calls at once as leave a slot free, light ones of the same user are answered at once."""

    async def story() -> None:
        starved_s, _ = await light_beside_heavy(Settings())
        fair = limited(QuotaLimit(user="*", task_type="render", concurrent=3))
        fair_s, refused = await light_beside_heavy(fair)
        assert (starved_s > 20, fair_s < 1, refused) == (True, True, 17)

    play(story)


def test_observing_refuses_nobody() -> None:
    """I2: the call goes on, and the note says what enforcing would have done."""

    async def story() -> None:
        settings = replace(
            limited(QuotaLimit(user="*", units=1, per_s=60)), mechanisms={**default_modes(), "quota": "observe"}
        )
        async with gate(settings=settings) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            outcomes: list[Outcome] = []
            for number in range(3):
                call = shop.call("bank", "pay", f"o{number}")
                bank.answer(await bank.next(), "paid")
                outcomes.append(await call)
            assert all(outcome.ok for outcome in outcomes)
            assert platform.gateway.counters.would["would_quota_exhausted"] == 2
            [span] = [span for span in await platform.spans.chain("o2") if span.kind == "call"]
            assert span.notes == ("would_quota_exhausted",)

    play(story)


def test_a_refusal_says_when_to_come_back() -> None:
    """B12: after the time it names, the same call passes."""

    async def story() -> None:
        async with gate(settings=limited(QuotaLimit(user="*", units=1, per_s=10))) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            for number in range(2):
                call = shop.call("bank", "pay", f"o{number}")
                bank.answer(await bank.next(), "paid")
                assert (await call).ok
                refused = (await shop.call("bank", "pay", "next")).error
                assert refused is not None
                assert refused.retry_after_ms is not None
                await asyncio.sleep(refused.retry_after_ms / 1000)

    play(story)
