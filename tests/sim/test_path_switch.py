"""Switching agents off and on, on the real path and on virtual time (A6)."""

from __future__ import annotations

import asyncio

from agentgate.adapters.memory.store import MemoryStore
from agentgate.app import Platform
from agentgate.model import Card
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def turn(platform: Platform, agent: str, *, on: bool = False) -> None:
    route = platform.gateway.switch.turn("default", agent, on=on, by="ada", reason="a bad batch")
    assert route is not None
    assert (route.settings.off is None) == on


def test_off_refuses_what_is_new_and_lets_end_what_runs() -> None:
    """A6: what runs ends as ever, a repeat is answered from the ledger; what waits and what comes is refused, saying
    who, why and that nothing was sent; on again, everything goes on.
    """

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS, concurrency=1).connect()
            client = WirePeer(platform, "shop").connect()
            running = client.call("bank", "pay", "o1")
            unit = await agent.next()
            waiting = [client.call("bank", "pay", f"w{number}") for number in range(3)]
            await asyncio.sleep(1)
            turn(platform, "bank")
            for call in (*waiting, client.call("bank", "pay", "o2"), client.read("bank")):
                error = (await call).error
                assert error is not None
                assert (error.code, error.fault, error.sent) == ("no_route", "refused", False)
                assert "switched off by ada" in error.detail
                assert "a bad batch" in error.detail
            assert asyncio.get_running_loop().time() < 1.1
            joined = client.call("bank", "pay", "o1")
            agent.answer(unit, "paid")
            assert [(await call).value for call in (running, joined)] == ["paid", "paid"]
            assert (await client.call("bank", "pay", "o1")).replayed
            turn(platform, "bank", on=True)
            again = client.call("bank", "pay", "w1")
            agent.answer(await agent.next(), "paid w1")
            assert (await again).value == "paid w1"

    play(story)


def test_off_ends_retries_and_waits_of_every_kind() -> None:
    """A6, B5: neither a call that backs off nor one that waits for a cool-down begins anything any more."""

    async def story() -> None:
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            calls = [client.call("bank", "pay", "o1")]
            agent.answer(await agent.next(), error="rate_limited", sent=False, retry_after_s=2.0)
            calls.append(client.call("bank", "pay", "o2"))
            await asyncio.sleep(1)
            turn(platform, "bank")
            assert [(await call).code for call in calls] == ["no_route", "no_route"]
            assert agent.invoked.empty()

    play(story)


def test_an_agent_that_is_off_finishes_and_begins_nothing() -> None:
    """A6: its running unit may still call others; a root call of its own is refused."""

    async def story() -> None:
        async with gate() as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            order = WirePeer(platform, "order", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            call = client.call("order", "pay", "o1")
            unit = await order.next()
            turn(platform, "order")
            child = order.call("bank", "pay", "o1", token=unit.params.token)
            bank.answer(await bank.next(), "paid")
            assert (await child).value == "paid"
            order.answer(unit, "ordered")
            assert (await call).value == "ordered"
            root = (await order.call("bank", "pay", "o2")).error
            assert root is not None
            assert (root.code, root.retry) == ("forbidden", "never")
            assert bank.invoked.empty()

    play(story)


def test_off_holds_over_restarts() -> None:
    """A6: the gate that starts next, and a new process of the agent, find it off, with the first reason and time."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            platform.directory.hello("default", Card(agent="bank", skills=SKILLS), "gone")
            turn(platform, "bank")
            assert platform.gateway.switch.turn("default", "skill:pay", on=False, by="ada", reason="x") is None
            assert platform.gateway.switch.turn("default", "nobody", on=False, by="ada", reason="x") is None
            platform.directory.gone("gone")
            await asyncio.sleep(5)
            again = platform.gateway.switch.turn("default", "bank", on=False, by="bob", reason="me too")
            assert again is not None
            assert again.settings.off is not None
            assert again.settings.off.by == "ada"
        async with gate(store) as platform:
            client = WirePeer(platform, "shop").connect()
            assert "switched off by ada" in ((await client.read("bank")).error or client).detail  # type: ignore[union-attr]  # no error fails just the same
            WirePeer(platform, "bank", skills=SKILLS).connect()
            assert (await client.read("bank")).code == "no_route"
            turn(platform, "bank", on=True)
            assert platform.directory.resolve("default", "bank") is not None

    play(story)
