"""Callers that hammer on (B6), on the real path and on virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.policy import Mode
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def switched(mode: Mode) -> Settings:
    return replace(Settings(), mechanisms={**default_modes(), "abuse": mode})


def test_a_callers_own_retry_loop_is_held_back_and_named() -> None:
    """B6, H5: repeats of a final answer end in `abnormal_usage` and a finding; other callers go on."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop, desk = WirePeer(platform, "shop").connect(), WirePeer(platform, "desk").connect()
            first = shop.call("bank", "pay", "o1", 1)
            bank.answer(await bank.next(), "paid")
            assert (await first).ok
            codes = []
            for _ in range(9):
                codes.append((await shop.call("bank", "pay", "o1", 2)).code)
                await asyncio.sleep(3)
            assert codes[:7] == ["key_conflict"] * 7
            assert codes[7] == "abnormal_usage"
            honest = desk.call("bank", "pay", "o2")
            bank.answer(await bank.next(), "paid")
            assert (await honest).ok
            [found] = platform.gateway.findings.of("default")
            assert (found.kind, found.subject, found.evidence["code"]) == (
                "hammering_caller",
                "shop > bank",
                "key_conflict",
            )

    play(story)


def test_a_caller_that_takes_its_other_branch_is_left_alone() -> None:
    """B6: many orders that are refused once each, and one that is asked about every minute, hold nobody back."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            for number in range(60):
                call = shop.call("bank", "pay", f"o{number}")
                bank.answer(await bank.next(), error="rejected")
                assert (await call).code == "rejected"
            for _ in range(20):
                assert (await shop.call("bank", "pay", "o1")).replayed
            assert platform.gateway.findings.of("default") == []

    play(story)


def test_observing_holds_nobody_back() -> None:
    """I2: the call goes on, the note says that it would have been held back, and the finding is there."""

    async def story() -> None:
        async with gate(settings=switched("observe")) as platform:
            shop = WirePeer(platform, "shop").connect()
            WirePeer(platform, "bank", skills=SKILLS).connect()
            for _ in range(12):
                assert (
                    await shop.call("bank", "look", effect="read", payload=1, timeout_ms=1)
                ).code == "deadline_exceeded"
                await asyncio.sleep(0.1)
            assert platform.gateway.counters.would["would_hold_back"] > 3
            assert [found.kind for found in platform.gateway.findings.of("default")] == ["hammering_caller"]

    play(story)


def test_switched_off_nobody_is_counted() -> None:
    """I2: off is off."""

    async def story() -> None:
        async with gate(settings=switched("off")) as platform:
            shop = WirePeer(platform, "shop").connect()
            WirePeer(platform, "bank", skills=SKILLS).connect()
            for _ in range(20):
                assert (await shop.call("bank", "look", effect="read", timeout_ms=1)).code == "deadline_exceeded"
            assert (platform.gateway.findings.of("default"), len(platform.gateway.policies.abuse)) == ([], 0)

    play(story)
