"""Calls over HTTP on the real path and on virtual time: what is answered when, and what goes on without its caller."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.adapters.memory.store import MemoryStore
from agentgate.config import Settings
from agentgate.core.rate import RateOptions
from tests.sim.http_caller import CALL, READ, HttpCaller
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play


def test_a_keyed_call_is_answered_and_its_repeat_is_replayed() -> None:
    """C3: the answer has its id, its key and its trace; the same key again runs nothing."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            call = shop.post({**CALL, "payload": {"n": 2}}, idempotency_key='"o1"')
            unit = await bank.next()
            assert (unit.params.caller, unit.params.key, unit.params.payload) == (
                "client",
                "client:pay:o1:run",
                {"n": 2},
            )
            bank.answer(unit, "paid")
            first = await call
            assert (first.status, first.body["value"], first.body["key"]) == (200, "paid", "client:pay:o1:run")
            assert (first.body["status"], first.body["replayed"], first.body["joined"]) == ("done", False, False)
            assert len(first.body["trace_id"]) == 32
            assert first.headers["content-type"] == "application/json"
            again = await shop.post({**CALL, "payload": {"n": 2}, "business_key": "o1"})
            assert (again.body["value"], again.body["replayed"], again.body["id"]) == ("paid", True, first.body["id"])
            assert again.body["first_seen_at"] > 0
            assert bank.invoked.empty()
            other = await shop.post({**CALL, "payload": {"n": 3}}, idempotency_key="o1")
            assert (other.status, other.code, other.headers["x-should-retry"]) == (422, "key_conflict", "false")

    play(story)


def test_what_takes_long_is_answered_202_and_goes_on() -> None:
    """DESIGN 4.5: after three seconds the caller is told where to ask; then the answer is as the call's own."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            call = shop.pay("o1")
            unit = await bank.next()
            accepted = await call
            assert (accepted.status, accepted.body["status"], accepted.at) == (202, "running", 3.0)
            name = accepted.body["id"]
            assert accepted.headers["location"] == f"/v1/calls/{name}"
            assert (accepted.headers["retry-after"], accepted.body["poll_after_ms"]) == ("1", 1000)
            assert unit.unit in accepted.body["state"]
            running = await shop.look(name)
            assert (running.status, running.body["status"], running.at) == (202, "running", 3.0)
            waiting = shop.look(name, prefer="wait=10")
            await asyncio.sleep(4)
            bank.answer(unit, "paid")
            done = await waiting
            assert (done.status, done.body["value"], done.at) == (200, "paid", 7.0)
            later = await shop.look(name)
            repeat = await shop.pay("o1")
            assert later.body == {**repeat.body, "trace_id": accepted.body["trace_id"]}

    play(story)


@pytest.mark.parametrize(
    ("prefer", "status", "at"), [("wait=1", 202, 1.0), ("wait=20", 504, 5.0), ("wait=0", 202, 0.0)]
)
def test_a_keyed_call_waits_as_asked_within_its_deadline(prefer: str, status: int, at: float) -> None:
    """DESIGN 4.5: `Prefer: wait` moves the 202; a call that ends before is answered with its end."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            answered = await shop.post({**CALL, "business_key": "o1", "timeout_ms": 5000}, prefer=prefer)
            assert (answered.status, answered.at) == (status, at)
            assert answered.code == ("deadline_exceeded" if status == 504 else "")
            bank.answer(await bank.next(), "paid")

    play(story)


def test_a_read_waits_as_asked_or_ends() -> None:
    """DESIGN 4.5: a read cannot be asked for later, so it is never answered 202 and is not left running."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            slow, cut = shop.post(READ), shop.post(READ, prefer="wait=2")
            units = [await bank.next(), await bank.next()]
            ended = await cut
            assert (ended.status, ended.code, ended.at) == (504, "deadline_exceeded", 2.0)
            assert "id" not in ended.body
            await asyncio.sleep(0.1)
            assert [stop["unit"] for stop in bank.told("stop")] == [units[1].unit]
            await asyncio.sleep(5)
            bank.answer(units[0], "seen")
            assert (await slow).body["value"] == "seen"

    play(story)


@pytest.mark.parametrize(
    ("timeout_ms", "headers", "left_ms"),
    [
        (None, {}, 30_000),
        (9_000, {}, 9_000),
        (9_000, {"x_envoy_expected_rq_timeout_ms": "4000"}, 4_000),
        (None, {"grpc_timeout": "7S"}, 7_000),
        (9_000, {"grpc_timeout": "7000000u", "x_envoy_expected_rq_timeout_ms": "8000"}, 7_000),
        (2_000, {"grpc_timeout": "1M", "x_envoy_expected_rq_timeout_ms": "8000"}, 2_000),
    ],
)
def test_the_smallest_limit_is_the_deadline(timeout_ms: int | None, headers: dict[str, str], left_ms: int) -> None:
    """B8: body, gRPC and Envoy each may say how much time is left; the target is told the least."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            body = {**CALL, "business_key": "o1"} | ({} if timeout_ms is None else {"timeout_ms": timeout_ms})
            call = shop.post(body, prefer="wait=60", **headers)
            unit = await bank.next()
            assert unit.params.remaining_ms == left_ms
            bank.answer(unit)
            assert (await call).status == 200

    play(story)


@pytest.mark.parametrize(
    ("body", "goes_on"),
    [
        ({**CALL, "business_key": "o1"}, True),
        ({**CALL, "business_key": "o1", "on_disconnect": "cancel"}, False),
        (READ, False),
        ({**READ, "on_disconnect": "detach"}, True),
    ],
)
def test_what_becomes_of_a_call_whose_caller_hangs_up(body: dict[str, str], goes_on: bool) -> None:
    """Decision 3: keyed work goes on until its deadline, reads are cancelled; `on_disconnect` overrides both."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            call = shop.post(body)
            unit = await bank.next()
            call.cancel()
            await asyncio.sleep(1)
            assert len(platform.gateway.front) == goes_on
            stopped = bool(bank.told("stop"))
            assert stopped == (body["task_type"] == "look" and not goes_on)  # a write's unit has its deadline
            bank.answer(unit, "paid")
            await asyncio.sleep(1)
            assert len(platform.gateway.front) == 0

    play(story)


def test_an_id_works_after_a_restart() -> None:
    """C3, A8: the id is the key itself, so the next gate on the same store knows the call."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            call = shop.pay("o1")
            bank.answer(await bank.next(), "paid")
            name = (await call).body["id"]
        async with gate(store, seed=2) as platform:
            found = await HttpCaller(platform).look(name)
            assert (found.status, found.body["value"], found.body["id"]) == (200, "paid", name)

    play(story)


def test_a_call_that_was_turned_away_after_its_202_is_known_for_a_while() -> None:
    """E1: what leaves no record is remembered for those who were told to ask again; later there is advice."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS, concurrency=1).connect(), HttpCaller(platform)
            first = shop.pay("o1")
            unit = await bank.next()
            second = await shop.post({**CALL, "business_key": "o2", "timeout_ms": 5000})
            assert (second.status, second.body["state"]) == (202, "it waits for its turn at the target")
            ended = await shop.look(second.body["id"], prefer="wait=30")
            assert (ended.status, ended.code, ended.body["sent"], ended.at) == (504, "deadline_exceeded", False, 5.0)
            assert ended.body["trace_id"] == second.body["trace_id"]
            assert (await first).status == 202
            bank.answer(unit, "paid")
            await asyncio.sleep(40)
            assert (await shop.look(second.body["id"])).status == 504

    async def much_later() -> None:
        async with gate() as platform:
            WirePeer(platform, "bank", skills=SKILLS).connect()
            shop = HttpCaller(platform)
            call = await shop.post({**CALL, "business_key": "o3", "timeout_ms": 3500, "task_type": "pay"})
            assert call.status == 202
            await asyncio.sleep(100)
            forgotten = await shop.look(call.body["id"][:-1])
            assert (forgotten.status, forgotten.code) == (404, "not_found")
            assert "same key" in forgotten.body["advice"]

    play(story)
    play(much_later)


def test_a_call_that_waits_for_its_senders_turn_can_be_asked_for() -> None:
    """B1: before it has come as far as its key, a call that was answered 202 is known."""

    async def story() -> None:
        settings = Settings(rate=RateOptions(rate_per_s=0.1, burst=1))
        async with gate(settings=settings) as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            first, second = shop.pay("o1"), shop.pay("o2")
            bank.answer(await bank.next(), "paid")
            assert (await first).headers["ratelimit"] == '"sender";r=0;t=10'
            accepted = await second
            assert (accepted.status, accepted.body["state"]) == (202, "")
            known = await shop.look(accepted.body["id"])
            assert (known.status, known.body["state"]) == (202, "it waits for its turn")
            waiting = shop.look(accepted.body["id"], prefer="wait=30")
            bank.answer(await bank.next(), "paid too")
            assert (await waiting).body["value"] == "paid too"

    play(story)


def test_who_sends_too_much_is_told_in_every_dialect() -> None:
    """B1, PEERS 6.5: 429 with the RateLimit fields, the registered problem type, and when to come again."""

    async def story() -> None:
        settings = Settings(rate=RateOptions(rate_per_s=0.5, burst=3, parked_max=0))
        async with gate(settings=settings) as platform:
            shop = HttpCaller(platform)
            calls = [shop.post({**READ, "timeout_ms": 1000}) for _ in range(4)]
            passed, refused = await calls[0], await calls[3]
            assert (passed.code, passed.headers["ratelimit"]) == ("no_route", '"sender";r=2;t=2')
            assert (refused.status, refused.code) == (429, "rate_limited")
            assert refused.headers["ratelimit-policy"] == '"sender";q=3;w=6'
            assert refused.headers["ratelimit"] == '"sender";r=0;t=2'
            assert (refused.headers["retry-after"], refused.headers["retry-after-ms"]) == ("2", "2000")
            assert refused.headers["x-should-retry"] == "true"
            assert refused.body["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
            assert refused.body["violated-policies"] == ["sender"]

    play(story)


def test_an_open_breaker_is_said_in_every_dialect() -> None:
    """B3, PEERS 6.5: 503 with the time, and that no client is to retry by itself."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            for number in range(5):
                call = shop.pay(f"o{number}")
                bank.answer(await bank.next(), error="handler_error")
                assert (await call).status == 500
            refused = await shop.pay("o9")
            assert (refused.status, refused.code, refused.body["retry"]) == (503, "breaker_open", "never")
            assert (refused.headers["x-should-retry"], refused.headers["grpc-retry-pushback-ms"]) == ("false", "-1")
            assert 8 <= int(refused.headers["retry-after"]) <= 12

    play(story)


def test_a_key_that_runs_is_joined_or_refused_without_a_retry() -> None:
    """C3, the 409 trap: a repeat shares the running answer; one that declines is told not to hammer at it."""

    async def story() -> None:
        async with gate() as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            first, second = shop.pay("o1"), shop.pay("o1")
            unit = await bank.next()
            declined = await shop.pay("o1", join=False)
            assert (declined.status, declined.code, declined.headers["x-should-retry"]) == (409, "in_progress", "false")
            assert declined.headers["retry-after"] == "1"
            bank.answer(unit, "paid")
            assert [(await call).body["joined"] for call in (first, second)] == [False, True]

    play(story)


def test_without_the_ledger_nothing_is_answered_202() -> None:
    """DESIGN 1.3: what is not written down cannot be asked for later, so its caller waits."""

    async def story() -> None:
        settings = Settings(mechanisms={**Settings().mechanisms, "idempotency": "off"})
        async with gate(settings=settings) as platform:
            bank, shop = WirePeer(platform, "bank", skills=SKILLS).connect(), HttpCaller(platform)
            call = shop.pay("o1")
            unit = await bank.next()
            await asyncio.sleep(6)
            bank.answer(unit, "paid")
            answered = await call
            assert (answered.status, answered.at) == (200, 6.0)

    play(story)
