"""What is noticed on the real path and on virtual time: B7, C6, and breakers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.duplicates import DuplicateOptions
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def noticed(platform: Platform, kind: str) -> list[tuple[str, int, dict[str, Any]]]:
    found = [finding for finding in platform.gateway.findings.of("default") if finding.kind == kind]
    return [(finding.subject, finding.count, finding.evidence) for finding in found]


async def pay(bank: WirePeer, shop: WirePeer, key: str, payload: Any = None, took_s: float = 0.0) -> None:
    call = shop.call("bank", "pay", key, payload)
    unit = await bank.next()
    await asyncio.sleep(took_s)
    bank.answer(unit, "paid")
    assert (await call).ok


async def pay_at_once(bank: WirePeer, shop: WirePeer, *keys: str) -> None:
    """The same payment under several keys, each begun before the others have ended."""
    calls = [shop.call("bank", "pay", key, {"sku": "A-7"}) for key in keys]
    units = [await bank.next() for _ in keys]
    for unit, call in zip(units, calls, strict=True):
        bank.answer(unit, "paid")
        assert (await call).ok


def test_equal_writes_under_different_keys_are_reported() -> None:
    """C6: all run, and the finding names their keys; a repeat is none, nor is the same order placed again later."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            for key in ("o1", "o2"):
                await pay(bank, shop, key, {"sku": "A-7"})
                assert (await shop.call("bank", "pay", key, {"sku": "A-7"})).replayed
            assert noticed(platform, "duplicate_parameters") == []
            await pay_at_once(bank, shop, "o3", "o4")
            await pay(bank, shop, "o5", {"sku": "B-2"})
            assert noticed(platform, "duplicate_parameters") == [("shop > bank.pay", 1, {"keys": ["o3", "o4"]})]

    play(story)


def test_noticing_equal_writes_can_be_off() -> None:
    """C6: where twins are everyday business, nobody wants to hear of them."""

    async def story() -> None:
        async with gate(settings=replace(Settings(), duplicates=DuplicateOptions(window_s=None))) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            await pay_at_once(bank, shop, "o1", "o2")
            assert platform.gateway.findings.of("default") == []

    play(story)


def test_a_caller_that_waits_less_than_the_target_takes_is_reported() -> None:
    """B7: its own limit of one second, against answers that take four; who says nothing is not reported."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop, hasty = WirePeer(platform, "shop").connect(), WirePeer(platform, "hasty").connect()
            for number in range(22):
                await pay(bank, shop, f"o{number}", took_s=4.0)
            assert platform.gateway.findings.of("default") == []
            assert (await hasty.call("bank", "pay", "h1", timeout_ms=1000)).code == "deadline_exceeded"
            [(subject, _, evidence)] = noticed(platform, "caller_limit_below_gate")
            assert (subject, evidence["limit_s"]) == ("hasty > bank.pay", 1.0)
            assert 3.9 < evidence["usual_s"] < 4.2

    play(story)


def test_a_client_that_always_leaves_after_the_same_time_is_reported() -> None:
    """B7: a time-out in the client that the gate was not told of shows by its leaving."""

    async def story() -> None:
        async with gate() as platform:
            WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            for number in range(1, 6):
                call = shop.read("bank")
                await asyncio.sleep(3)
                shop.send(method="cancel", params={"id": f"{shop.instance}-call-{number}"})
                assert (await call).code == "cancelled"
            [(subject, count, evidence)] = noticed(platform, "caller_limit_below_gate")
            assert (subject, count, evidence) == ("shop > bank.look", 1, {"leaves_after_s": 3.0, "gate_s": 30.0})

    play(story)


def test_an_open_breaker_is_reported() -> None:
    """H5: whoever looks for the cause finds which target was left alone, and when first."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = WirePeer(platform, "shop").connect()
            for number in range(6):
                call = shop.call("bank", "pay", f"o{number}")
                if number < 5:
                    bank.answer(await bank.next(), error="handler_error")
                await call
            [(subject, count, evidence)] = noticed(platform, "breaker_opened")
            assert (subject, count, 8 <= evidence["open_s"] <= 12) == ("bank.pay", 1, True)

    play(story)


def test_processes_that_share_a_name_are_reported() -> None:
    """A8: two agents, or two clients, under one instance name throw each other out, and nobody else would say so."""

    async def story() -> None:
        async with gate() as platform:
            for name, skills in (("bank", SKILLS), ("shop", ())):
                twins = [WirePeer(platform, name, skills=skills, instance=f"{name}-1", pid=pid) for pid in (7, 8)]
                twins[0].connect()
                for turn in range(1, 5):
                    await asyncio.sleep(1)
                    twins[turn % 2].connect()
                    assert twins[(turn + 1) % 2].closed_because == "a newer connection of the same instance took over"
                    assert len(noticed(platform, "instance_name_shared")) == (turn >= 3) + (name == "shop")
            assert noticed(platform, "instance_name_shared") == [
                ("shop/shop-1", 2, {"takeovers": 4, "pids": [8, 7]}),
                ("bank/bank-1", 2, {"takeovers": 4, "pids": [8, 7]}),
            ]

    play(story)


def test_a_process_that_comes_back_shares_its_name_with_nobody() -> None:
    """A8: connections that broke, or fell silent, are no takeovers, however many."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            for _ in range(5):
                bank.session.closed()
                bank.connect()
            for _ in range(3):
                bank.fall_silent()
                await asyncio.sleep(8)
                bank.connect()
            assert noticed(platform, "instance_name_shared") == []

    play(story)
