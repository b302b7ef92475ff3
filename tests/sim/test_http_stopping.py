"""What callers over HTTP are told by a gate that stops: the truth about what was sent, and when."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.config import Settings
from agentgate.core.call_id import call_id
from agentgate.core.policy import Mode
from agentgate.model import KeyId
from tests.sim.http_caller import CALL, READ, HttpCaller
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def keeping(mode: Mode) -> Settings:
    """With the ledger in this mode."""
    return Settings(mechanisms={**Settings().mechanisms, "idempotency": mode})


def test_a_stopping_gate_ends_what_waits() -> None:
    """A6: it takes nothing new; what is keyed is answered that it goes on, a read that it has to come again.

    Whoever asked what became of a call is told what is known, before anything else is waited for.
    """

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            keyed, read = shop.pay("o1"), shop.post(READ)
            await bank.next(), await bank.next()
            platform.gateway.stop_taking()
            refused = await shop.pay("o2")
            assert (refused.status, refused.code, refused.headers["retry-after"]) == (503, "overloaded", "1")
            asked = shop.look(call_id(KeyId("default", "bank", "client", "pay", "o1", "run")), prefer="wait=30")
            await asyncio.sleep(1)
            shop.calls.stop_waiting()
            assert ((await asked).status, (await asked).at) == (202, 1.0)
            assert (await asked).body["state"].startswith("running as ")
            assert [keyed.done(), read.done()] == [False, False]
            shop.calls.give_up()
            assert ((await keyed).status, (await keyed).body["status"]) == (202, "running")
            assert ((await read).status, (await read).code, (await read).body["sent"]) == (503, "overloaded", True)
            assert (await read).headers["x-should-retry"] == "true"
            assert not shop.calls.waiting

    play(story)


@pytest.mark.parametrize("mode", ["observe", "off"])
def test_a_write_of_which_nothing_is_kept_is_not_to_be_repeated(mode: Mode) -> None:
    """C1, A6: an agent works on it and no record protects its key, so no client may send it again by itself."""

    async def story() -> None:
        async with gate(settings=keeping(mode)) as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            call, again = shop.pay("o1"), shop.post({**CALL, "task_type": "tag", "business_key": "o2"})
            await bank.next(), await bank.next()
            shop.calls.give_up()
            ended, tagged = await call, await again
            assert (ended.code, ended.body["sent"], ended.body["retry"]) == ("outcome_unknown", True, "never")
            assert ended.headers["x-should-retry"] == "false"
            assert (tagged.code, tagged.body["sent"], tagged.body["retry"]) == ("overloaded", True, "after")

    play(story)


@pytest.mark.parametrize("mode", ["enforce", "observe", "off"])
def test_what_was_not_sent_is_never_sent_after_its_caller_was_told_so(mode: Mode) -> None:
    """C1: calls that queue, or have just come, when the gate gives up are refused as not sent, and stay so."""

    async def story() -> None:
        async with gate(settings=keeping(mode)) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            mint = WirePeer(platform, "mint", skills=SKILLS, concurrency=1).connect()
            shop = HttpCaller(platform)
            outer = shop.pay("o1")
            token = (await bank.next()).params.token
            taken = shop.pay("o2", target="mint")
            first = await mint.next()
            queued = shop.pay("o3", target="mint", token=token)
            await asyncio.sleep(1)
            shop.calls.give_up()
            mint.answer(first, "struck")
            late = shop.pay("o4", target="mint", token=token)
            sent = 202 if mode == "enforce" else 502
            assert [(await call).status for call in (outer, taken)] == [sent, sent]
            for call in (queued, late):
                told = await call
                assert (told.code, told.body["sent"], told.body["retry"]) == ("overloaded", False, "after")
            await asyncio.sleep(1)
            assert mint.invoked.empty()

    play(story)


def test_a_handlers_write_is_told_that_it_runs() -> None:
    """C1, B8: a call with a unit token has no 202; its key protects a repeat, which gets the answer. So of a joiner."""

    async def story() -> None:
        async with gate() as platform:
            bank, mint = (WirePeer(platform, name, skills=SKILLS).connect() for name in ("bank", "mint"))
            shop = HttpCaller(platform)
            outer = shop.pay("o1")
            unit = await bank.next()
            body = {**CALL, "target": "mint", "business_key": "o1", "token": unit.params.token}
            inner, joined = shop.post(body), shop.post(body)
            below = await mint.next()
            shop.calls.give_up()
            for call in (inner, joined):
                told = await call
                assert (told.status, told.code, told.body["sent"]) == (409, "in_progress", True)
                assert (told.body["retry"], told.headers["retry-after"]) == ("after", "1")
            assert (await outer).status == 202
            mint.answer(below, "struck")
            await asyncio.sleep(1)
            next_gate = HttpCaller(platform)
            repeat = await next_gate.post(body)
            assert (repeat.body["value"], repeat.body["replayed"]) == ("struck", True)
            assert mint.invoked.empty()

    play(story)
