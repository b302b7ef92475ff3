"""The operator's way out of an unknown outcome (C4, DESIGN 4.2), on the real path and on virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from agentgate.app import Platform
from agentgate.core.call_id import call_id
from agentgate.model import NEIGHBOUR, Identity, KeyId
from agentgate.server.problems import Refused
from agentgate.server.settle import Settled, settle
from tests.sim.http_caller import Answered, HttpCaller
from tests.sim.wire_peer import SKILLS, Invoked, WirePeer, gate, play

KEY = KeyId("default", "bank", "client", "pay", "o1", "run")
NAME = call_id(KEY)
OPERATOR = Identity(name="olga", scopes=frozenset({"operate"}))


async def say(platform: Platform, word: Any, *, name: str = NAME, by: Identity = NEIGHBOUR) -> Settled | str:
    """Settle, or the code of the refusal."""
    body = word if isinstance(word, bytes) else msgspec.json.encode(word)
    try:
        return await settle(platform.gateway, name, body, by)
    except Refused as refused:
        return refused.error.code


async def advice(platform: Platform, word: Any) -> str:
    """What a refusal tells the operator to do."""
    with pytest.raises(Refused) as refused:
        await settle(platform.gateway, NAME, msgspec.json.encode(word), NEIGHBOUR)
    return refused.value.error.advice


async def lost(platform: Platform, task_type: str = "pay") -> tuple[WirePeer, HttpCaller]:
    """A call whose instance has gone; and the instance that is there now."""
    shop = HttpCaller(platform)
    one = WirePeer(platform, "bank", skills=SKILLS).connect()
    call = shop.pay("o1", task_type=task_type)
    await one.next()
    two = WirePeer(platform, "bank", skills=SKILLS).connect()
    one.leave()
    if task_type == "ship":
        two.answer(await two.next(), error="rejected")  # the check does not know either
    answered = await call
    if answered.status == 202:
        answered = await shop.look(answered.body["id"], prefer="wait=30")
    assert (answered.status, answered.code) == (502, "outcome_unknown")
    return two, shop


async def start(shop: HttpCaller, bank: WirePeer, key: str) -> tuple[Invoked, asyncio.Task[Answered]]:
    """A call whose unit runs."""
    call = shop.pay(key)
    return await bank.next(), call


@pytest.mark.parametrize(
    ("word", "status", "said"),
    [
        ({"as": "done", "value": {"n": 1}}, 200, {"n": 1}),
        ({"as": "done", "value": None}, 200, None),
        ({"as": "failed", "detail": "the bank says no"}, 500, "the bank says no"),
        ({"as": "failed"}, 500, "an operator says that it failed"),
    ],
)
def test_everybody_is_told_what_the_operator_says(word: dict[str, Any], status: int, said: Any) -> None:
    """C4: a repeat and a question get the operator's answer, nothing runs again, and it is logged who said it."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = await lost(platform)
            with capture_logs() as logs:
                settled = await say(platform, word, by=OPERATOR)
            assert settled == Settled(id=NAME, key="client:pay:o1:run", state="done" if status == 200 else "failed")
            [line] = [line for line in logs if line["event"] == "call_settled"]
            assert (line["by"], line["key"], line["target"]) == ("olga", "client:pay:o1:run", "bank")
            for answered in (await shop.pay("o1"), await shop.look(NAME)):
                assert (answered.status, answered.body["replayed"]) == (status, True)
                assert answered.body.get("value", answered.body.get("detail")) == said
            assert bank.invoked.empty()
            assert await say(platform, {"as": "not_done"}) == "version_conflict"
            todo = "needs its own `action`" if status == 200 else "with `again` runs it anew"
            assert todo in await advice(platform, {"as": "not_done"})

    play(story)


def test_what_did_not_happen_runs_again() -> None:
    """C4: "not done" frees the key, and the next call with it is run."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = await lost(platform)
            assert await say(platform, {"as": "not_done"}) == Settled(id=NAME, key="client:pay:o1:run", state="none")
            assert "the key is free" in await advice(platform, {"as": "not_done"})
            assert (await shop.look(NAME)).status in (404, 502)  # nothing is known any more, but that it was lost
            call = shop.pay("o1")
            bank.answer(await bank.next(), "paid")
            assert (await call).body["value"] == "paid"

    play(story)


def test_a_settled_failure_may_be_run_again() -> None:
    """DESIGN 4.2: `again` runs what is stored as failed, also when an operator has said so."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = await lost(platform)
            assert isinstance(await say(platform, {"as": "failed"}), Settled)
            call = shop.pay("o1", again=True)
            bank.answer(await bank.next(), "paid")
            assert (await call).body["value"] == "paid"

    play(story)


def test_only_what_is_unknown_can_be_settled() -> None:
    """C4: a call that runs or queues, one that is over and one that never was are refused, each with its own code."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            word = {"as": "done", "value": 1}
            assert await say(platform, word) == "not_found"
            assert await say(platform, word, name="nonsense") == "not_found"
            call = shop.pay("o1")
            unit = await bank.next()
            assert await say(platform, word) == "in_progress"
            bank.answer(unit, "paid")
            assert (await call).status == 200
            waiting = WirePeer(platform, "vault", skills=SKILLS, concurrency=1).connect()
            first, second = (shop.pay(key, target="vault") for key in ("o1", "o2"))
            unit = await waiting.next()
            queued = call_id(KEY._replace(target="vault", business_key="o2"))
            assert await say(platform, word, name=queued) == "in_progress"
            waiting.answer(unit, "kept")
            waiting.answer(await waiting.next(), "kept")
            assert [(await first).status, (await second).status] == [200, 200]
            assert await say(platform, word) == "version_conflict"
            assert await say(platform, word, by=Identity(tenant="other", name="olga")) == "not_found"

    play(story)


@pytest.mark.parametrize(
    ("word", "code"),
    [
        (b"", "bad_request"),
        (b"{}", "bad_request"),
        (b'{"as":"perhaps"}', "bad_request"),
        (b'{"as":"done"}', "bad_request"),
        (b'{"as":"done","value":NaN}', "bad_request"),
        (b'{"as":"failed","value":1}', "bad_request"),
        (b'{"as":"done","value":"' + b"x" * 300_000 + b'"}', "too_large"),
    ],
)
def test_a_word_that_is_none_changes_nothing(word: bytes, code: str) -> None:
    """I6: what is no word of an operator is refused, and the outcome stays unknown."""

    async def story() -> None:
        async with gate() as platform:
            await lost(platform)
            assert await say(platform, word) == code
            assert (await HttpCaller(platform).look(NAME)).code == "outcome_unknown"

    play(story)


def test_whoever_waits_for_a_check_is_told_what_the_operator_says() -> None:
    """C4, F83: callers in the air on an unknown key get the operator's word, whatever the check comes to."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = await lost(platform, "ship")
            await asyncio.sleep(10)
            owner = shop.pay("o1", task_type="ship")
            check = await bank.next()
            assert check.params.task_type == "check:ship"
            joiner = shop.pay("o1", task_type="ship")
            await asyncio.sleep(0.1)
            key = KEY._replace(task_type="ship")
            assert isinstance(await say(platform, {"as": "done", "value": "seen"}, name=call_id(key)), Settled)
            told = await joiner
            assert (told.status, told.body["value"], owner.done()) == (200, "seen", False)
            bank.answer(check, error="rejected")
            assert (await owner).body["value"] == "seen"
            assert bank.invoked.empty()

    play(story)


def test_whoever_joined_goes_on_when_it_did_not_happen() -> None:
    """C2, C4: "not done" frees the key for those in the air too; whichever comes to the target first, it runs once."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = await lost(platform, "ship")
            await asyncio.sleep(10)
            busy = [await start(shop, bank, f"b{number}") for number in range(7)]
            owner = shop.pay("o1", task_type="ship", priority=9)
            check = await bank.next()
            ahead = shop.pay("b8", priority=9)  # takes the slot that the check leaves
            joiner = shop.pay("o1", task_type="ship", priority=2)
            await asyncio.sleep(0.1)
            name = call_id(KEY._replace(task_type="ship"))
            assert isinstance(await say(platform, {"as": "not_done"}, name=name), Settled)
            bank.answer(check, None)
            bank.answer(await bank.next(), "paid")
            shipping = await bank.next()
            for unit, _ in busy:  # now there is a slot for everybody
                bank.answer(unit, "paid")
            await asyncio.sleep(0.1)
            bank.answer(shipping, "shipped")
            assert [(await call).body.get("value") for call in (owner, joiner)] == ["shipped", "shipped"]
            assert [(await call).status for call in (ahead, *(call for _, call in busy))] == [200] * 8
            assert bank.invoked.empty()

    play(story)


def test_whoever_asks_follows_those_who_go_on() -> None:
    """C4: who waits for a key that an operator frees is told what its next run comes to, if there is one at once."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = await lost(platform, "ship")
            await asyncio.sleep(10)
            name = call_id(KEY._replace(task_type="ship"))
            owner = shop.pay("o1", task_type="ship")
            check = await bank.next()
            joiner, asking = shop.pay("o1", task_type="ship"), shop.look(name, prefer="wait=30")
            await asyncio.sleep(0.1)
            assert isinstance(await say(platform, {"as": "not_done"}, name=name), Settled)
            shipping = await bank.next()
            bank.answer(check, error="rejected")
            await asyncio.sleep(1)
            assert not asking.done()
            bank.answer(shipping, "shipped")
            assert [(await call).body["value"] for call in (owner, joiner, asking)] == ["shipped"] * 3
            assert bank.invoked.empty()

    play(story)


@pytest.mark.parametrize("turns", range(16))
def test_callers_that_come_with_the_word_run_once(turns: int) -> None:
    """C2, C4: whenever callers come while the key is freed, they hear that it is lost, or share its one new run."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = await lost(platform)
            word = asyncio.create_task(say(platform, {"as": "not_done"}))
            for _ in range(turns):
                await asyncio.sleep(0)
            calls = [shop.pay("o1") for _ in range(2)]
            assert isinstance(await word, Settled)
            await asyncio.sleep(0.1)
            assert bank.invoked.qsize() <= 1
            if not bank.invoked.empty():
                bank.answer(await bank.next(), "paid")
            answers = [await call for call in calls]
            assert {answer.code or answer.body["value"] for answer in answers} <= {"outcome_unknown", "paid"}
            assert bank.invoked.empty()

    play(story)


def test_a_unit_that_is_back_speaks_for_itself() -> None:
    """C3, A8: an unknown call whose unit has been found running again is not settled over its head."""

    async def story() -> None:
        async with gate() as platform:
            one, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            call = shop.pay("o1")
            unit = await one.next()
            one.leave()
            await asyncio.sleep(5)
            assert (await call).status in (202, 502)
            assert (await shop.look(NAME)).code == "outcome_unknown"
            one.connect(units=(one.running(unit),))
            await asyncio.sleep(1)
            assert await say(platform, {"as": "not_done"}) == "in_progress"
            one.answer(unit, "paid")
            assert (await shop.pay("o1")).body["value"] == "paid"

    play(story)


def test_the_ledger_is_listed_page_by_page_and_for_ones_own_tenant() -> None:
    """I2, I6: records of a tenant in the order of their keys, of one target or state, and nobody else's."""

    async def story() -> None:
        async with gate() as platform:
            await lost(platform)
            bank = WirePeer(platform, "mint", skills=SKILLS).connect()
            shop = HttpCaller(platform)
            for number in range(2, 5):
                call = shop.pay(f"o{number}", target="mint", caller=f"shop_{number}")
                bank.answer(await bank.next(), "struck")
                assert (await call).status == 200
            known = platform.gateway.known_calls
            keys = [record.key.business_key for record in await known.list_records("default", "", None, None, 10)]
            assert keys == ["o1", "o2", "o3", "o4"]
            [unknown] = await known.list_records("default", "", "unknown", None, 10)
            assert unknown.key == KEY
            first = await known.list_records("default", "mint", None, None, 2)
            rest = await known.list_records("default", "mint", None, first[-1].key, 2)
            assert [record.key.business_key for record in (*first, *rest)] == ["o2", "o3", "o4"]
            assert await known.list_records("default", "min", None, None, 10) == []
            assert await known.list_records("other", "", None, None, 10) == []
            assert await known.list_records("defaul", "", None, None, 10) == []

    play(story)
