"""Locks on the real path and on virtual time: turns, ends on every path, leases, resumption, restarts (DESIGN 4.4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agentgate.adapters.memory import MemoryStore
from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.core.locks import EPOCH_BITS, LockOptions
from agentgate.model import SUBMIT, Identity, Outcome, Skill
from agentgate.model.link import LockReport
from tests.sim.wire_peer import Invoked, WirePeer, gate, play

PAY = Skill(task_type="pay", timeout_s=60.0)
LOOK = Skill(task_type="look", effect="read")
SKILLS = (PAY, LOOK)


class Desk:
    """An agent with units at work, each of which may ask for locks."""

    def __init__(self, platform: Platform, name: str = "bank") -> None:
        self.platform = platform
        self.peer = WirePeer(platform, name, skills=SKILLS, concurrency=32).connect()
        self.client = WirePeer(platform, "shop").connect()
        self.orders = 0
        self.calls: list[asyncio.Future[Outcome]] = []

    async def unit(self, **options: Any) -> Invoked:
        """A new unit, by default of a write with a minute's time."""
        self.orders += 1
        options = {"timeout_ms": 60_000, **options}
        self.calls.append(self.client.call(self.peer.name, "pay", f"o{self.orders}-{self.peer.instance}", **options))
        return await self.peer.next()

    def lock(self, unit: Invoked, *names: str, **options: Any) -> asyncio.Future[Outcome]:
        return self.peer.lock(*names, token=unit.params.token, **options)


@asynccontextmanager
async def desk(**locks: Any) -> AsyncIterator[Desk]:
    async with gate(settings=Settings(locks=LockOptions(**locks))) as platform:
        yield Desk(platform)


def held(outcome: asyncio.Future[Outcome]) -> bool:
    return outcome.done() and outcome.result().ok


def locks_in_use(platform: Platform) -> dict[str, tuple[int, int]]:
    """How many have each lock, and how many wait for it."""
    return {name: (len(lock.has), len(lock.line)) for name, lock in platform.gateway.locks.standing().items()}


async def moment() -> None:
    await asyncio.sleep(0.05)


def test_a_lock_is_held_by_one_unit_at_a_time() -> None:
    """D4, D8: the next one has it as soon as it is given back; each grant has a higher epoch."""

    async def story() -> None:
        async with desk() as at:
            one, two = await at.unit(), await at.unit()
            first = at.lock(one, "stock")
            first_id = at.peer.last_lock
            second = at.lock(two, "stock")
            await moment()
            assert (held(first), second.done()) == (True, False)
            at.peer.unlock(first_id)
            assert (await first).value["lease_ms"] == 30_000
            assert 1 << EPOCH_BITS < (await first).value["epoch"] < (await second).value["epoch"]

    play(story)


def finish(at: Desk, unit: Invoked) -> None:
    at.peer.answer(unit, "paid")


def fail(at: Desk, unit: Invoked) -> None:
    at.peer.answer(unit, error="handler_error")


def die(at: Desk, _unit: Invoked) -> None:
    at.peer.leave()


def freeze(at: Desk, _unit: Invoked) -> None:
    at.peer.fall_silent()


def come_back_without(at: Desk, _unit: Invoked) -> None:
    at.peer.connect()


@pytest.mark.parametrize("end", [finish, fail, die, freeze, come_back_without])
def test_the_end_of_a_unit_frees_its_locks(end: Callable[[Desk, Invoked], None]) -> None:
    """D5: whatever the end is, also a killed process, what waits for the lock gets it, and nothing is left behind."""

    async def story() -> None:
        async with desk() as at:
            other = Desk(at.platform, "depot")
            holder, waiter = await at.unit(), await other.unit()
            assert (await at.lock(holder, "stock", "paper")).ok
            _ = at.lock(await at.unit(), "stock", timeout_ms=50_000)
            waits = other.lock(waiter, "paper", timeout_ms=20_000)
            await moment()
            assert not waits.done()
            end(at, holder)
            assert (await waits).ok
            other.peer.answer(waiter, "done")
            for unit in range(at.peer.invoked.qsize()):
                at.peer.answer(at.peer.invoked.get_nowait(), unit)
            at.peer.leave()
            await asyncio.sleep(15)
            assert locks_in_use(at.platform) == {}

    play(story)


def test_a_cancelled_call_frees_the_locks_of_its_unit() -> None:
    """D5: giving up a call frees what its unit holds once it has stopped, and what it waits for."""

    async def story() -> None:
        async with desk() as at:
            call = at.client.read("bank", timeout_ms=3000)
            reader = await at.peer.next()
            assert (await at.lock(reader, "stock")).ok
            waits = at.lock(await at.unit(), "stock", timeout_ms=20_000)
            assert (await call).code == "deadline_exceeded"
            assert at.peer.told("stop")
            at.peer.answer(reader, error="cancelled")
            assert (await waits).ok

    play(story)


def test_waiting_ends_in_time() -> None:
    """D5, D8: time-outs are spread by 15 %; they end before the unit does, and say who was in the way."""

    async def story() -> None:
        async with desk() as at:
            holder = await at.unit()
            assert (await at.lock(holder, "stock")).ok
            units = [await at.unit() for _ in range(8)]
            clock = asyncio.get_running_loop().time
            began, ends = clock(), []
            waits = [at.lock(unit, "stock", timeout_ms=8000) for unit in units[:7]]
            for wait in waits:
                wait.add_done_callback(lambda _: ends.append(clock() - began))
            default = at.lock(units[7], "stock")
            [outcome, *_] = await asyncio.gather(*waits)
            assert outcome.error is not None
            assert (outcome.code, outcome.error.sent) == ("deadline_exceeded", False)
            assert f"for 'stock': unit {holder.unit} of bank has it" in outcome.error.detail
            assert all(6.79 < end < 9.21 for end in ends)
            assert max(ends) - min(ends) > 0.5
            assert (await default).code == "deadline_exceeded"
            assert clock() - began < 11.51
            late = await at.unit(timeout_ms=2000)
            began = clock()
            assert (await at.lock(late, "stock", timeout_ms=50_000)).code == "deadline_exceeded"
            assert clock() - began < 1.91

    play(story)


def test_many_names_in_opposite_order_never_deadlock() -> None:
    """D6: two agents that name the same locks in opposite order take turns."""

    async def story() -> None:
        async with desk() as at:
            other = Desk(at.platform, "depot")
            turns = 0
            for _ in range(20):
                one, two = await at.unit(), await other.unit()
                pair = [at.lock(one, "a", "b"), other.lock(two, "b", "a")]
                ids = [at.peer.last_lock, other.peer.last_lock]
                await moment()
                assert sorted(map(held, pair)) == [False, True]
                first = pair.index(next(lock for lock in pair if held(lock)))
                (at, other)[first].peer.unlock(ids[first])
                assert (await pair[1 - first]).ok
                turns += 1
                for side, unit in ((at, one), (other, two)):
                    side.peer.answer(unit, "done")
            assert turns == 20

    play(story)


def test_one_by_one_in_the_wrong_order_is_refused_at_once() -> None:
    """D6: within a unit too; the refusal says what to ask for instead."""

    async def story() -> None:
        async with desk() as at:
            unit = await at.unit()
            assert (await at.lock(unit, "b")).ok
            outcome = await at.lock(unit, "a")
            assert outcome.error is not None
            assert (outcome.code, outcome.error.fault) == ("bad_request", "caller")
            assert "ask for 'a', 'b' in one request" in outcome.error.detail

    play(story)


def test_a_unit_that_does_not_stop_loses_its_lock_and_is_told() -> None:
    """D8: a zombie's lease runs out although its process lives; a minute later nobody waits for it any more."""

    async def story() -> None:
        async with desk() as at:
            zombie = await at.unit(timeout_ms=1000)
            assert (await at.lock(zombie, "stock")).ok
            lock_id = at.peer.last_lock
            assert (await at.calls[0]).code == "deadline_exceeded"
            waits = at.lock(await at.unit(), "stock", timeout_ms=55_000)
            await asyncio.sleep(20)
            assert not waits.done()
            await asyncio.sleep(13)
            assert held(waits)
            assert [told["id"] for told in at.peer.told("lock_lost")] == [lock_id]
            assert at.platform.gateway.counters.locks_lost == 1

    play(story)


def test_a_unit_that_lost_its_lock_writes_no_more() -> None:
    """D8, F130: a silent process loses its lease; when it is back, its unit may read, but what it writes is refused."""

    async def story() -> None:
        async with desk(lease_s=4.0) as at:
            holder = await at.unit()
            assert (await at.lock(holder, "stock")).ok
            lock_id = at.peer.last_lock
            other = Desk(at.platform, "depot")
            waits = other.lock(await other.unit(), "stock")
            at.peer.fall_silent()
            assert (await waits).ok
            assert [told["id"] for told in at.peer.told("lock_lost")] == [lock_id]
            again = at.lock(holder, "stock")
            write = at.peer.call("depot", "pay", "o9", token=holder.params.token)
            read = at.peer.read("depot", token=holder.params.token)
            refused = await write
            assert refused.error is not None
            assert (refused.code, refused.error.sent) == ("lease_lost", False)
            assert f"unit {holder.unit} has lost 'stock'" in refused.error.detail
            assert (await again).code == "lease_lost"
            other.peer.answer(await other.peer.next(), "seen")
            assert (await read).value == "seen"
            at.peer.answer(holder, "paid")
            assert (await at.calls[0]).value == "paid"

    play(story)


def test_signs_of_life_keep_a_lease() -> None:
    """F01: work longer than the lease keeps its lock as long as its process beats."""

    async def story() -> None:
        async with desk(lease_s=5.0) as at:
            assert (await at.lock(await at.unit(), "stock")).ok
            await asyncio.sleep(40)
            assert locks_in_use(at.platform) == {"stock": (1, 0)}

    play(story)


def test_a_session_lock_outlives_its_unit_but_not_its_process() -> None:
    """D8: it is freed when the process says so, or is gone; clients may hold one as well."""

    async def story() -> None:
        async with desk() as at:
            unit = await at.unit()
            assert (await at.lock(unit, "a", "b", scope="session")).ok
            first = at.peer.last_lock
            at.peer.answer(unit, "paid")
            await at.calls[0]
            waits = at.client.lock("a", scope="session")
            await asyncio.sleep(2)
            assert not waits.done()
            at.peer.unlock(first)
            assert (await waits).ok
            other = at.peer.lock("a", scope="session")
            at.client.leave()
            assert (await other).ok

    play(story)


def test_who_may_ask() -> None:
    """A lock of a message needs an open unit of this very process; names and ids are checked."""

    async def story() -> None:
        async with desk() as at:
            unit = await at.unit()
            twin = WirePeer(at.platform, "bank", skills=SKILLS).connect()
            stranger = WirePeer(at.platform, "depot", skills=SKILLS).connect()
            token = unit.params.token
            assert (await at.client.lock("a")).code == "bad_request"
            assert (await twin.lock("a", token=token)).code == "forbidden"
            assert (await stranger.lock("a", token=token)).code == "forbidden"
            assert (await at.lock(unit, "a\x00")).code == "bad_request"
            assert (await at.lock(unit)).code == "bad_request"
            assert (await at.lock(unit, "a", mode="both")).code == "bad_request"
            at.peer.answer(unit, "paid")
            await at.calls[0]
            assert (await at.lock(unit, "a")).code == "lease_lost"
            at.peer.unlock("unheard-of")
            at.peer.send(method="cancel", params={"id": "unheard-of"})
            at.peer.send(method="lock", id=7, params={"names": ["a"]})
            assert "needs an id" in at.peer.closed_because

    play(story)


def test_a_lost_connection_loses_no_lock() -> None:
    """Requests are sent again under their id, grants that were not heard are told again, lost unlocks are made good."""

    async def story() -> None:
        async with desk() as at:
            one, two, three, four = units = [await at.unit() for _ in range(4)]
            kept = at.lock(one, "a")
            kept_id = at.peer.last_lock
            outcome = await kept
            assert (await at.lock(two, "b")).ok  # its unlock will get lost
            other = Desk(at.platform, "depot")
            behind = other.lock(await other.unit(), "b", timeout_ms=30_000)
            _ = at.lock(three, "a", "c")  # and so will what ends this wait
            at.peer.forget(at.peer.last_lock)
            granted = at.lock(four, "z")
            granted_id = at.peer.last_lock
            at.peer.session.closed()  # before the answer leaves
            reports = tuple(at.peer.running(unit) for unit in units)
            report = LockReport(id=kept_id, names=("a",), epoch=outcome.value["epoch"], unit=one.unit)
            at.peer.connect(units=reports, locks=(report,))
            at.peer.ask_again(granted_id)
            at.peer.ask_again(granted_id)
            assert (await behind).ok
            assert (await granted).ok
            welcome = [message["result"] for message in at.peer.messages if message.get("id") == "hello"][-1]
            assert "lost_locks" not in welcome
            assert locks_in_use(at.platform) == {"a": (1, 0), "b": (1, 0), "z": (1, 0)}

    play(story)


def test_locks_are_claimed_again_after_a_restart() -> None:
    """F130: the gate's memory is gone; holders come first, with their epoch, and later grants have higher ones."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            at = Desk(platform)
            unit, gone = await at.unit(), await at.unit()
            mine, lost = await at.lock(unit, "stock"), await at.lock(gone, "paper")
            session = await at.peer.lock("cash", scope="session")
            ids = list(at.peer.locks)
            await asyncio.sleep(1)
            at.peer.leave()
            at.client.leave()
        async with gate(store, seed=2) as platform:
            other = Desk(platform, "depot")
            waits = [other.lock(await other.unit(), name, timeout_ms=30_000) for name in ("stock", "paper", "free")]
            await asyncio.sleep(3)
            assert not any(wait.done() for wait in waits)
            at.peer.platform = platform
            epoch = mine.value["epoch"]
            reports = (
                LockReport(id=ids[0], names=("stock",), epoch=epoch, unit=unit.unit),
                LockReport(id=ids[1], names=("paper",), epoch=lost.value["epoch"], unit="no-such-unit"),
                LockReport(id=ids[2], names=("cash",), epoch=session.value["epoch"], scope="session"),
                LockReport(id="lie", names=("stock",), epoch=epoch - 1, scope="session"),
                LockReport(id="nonsense", names=(), epoch=epoch, scope="session"),
                LockReport(id="future", names=("x",), epoch=1 << 60, unit=unit.unit),
            )
            at.peer.connect(units=(at.peer.running(unit),), locks=reports)
            await moment()
            welcome = [message["result"] for message in at.peer.messages if message.get("id") == "hello"][-1]
            assert welcome["lost_locks"] == [ids[1], "lie", "nonsense", "future"]
            assert [held(wait) for wait in waits] == [False, True, True]  # all who were expected are back
            assert locks_in_use(platform)["cash"] == (1, 0)
            refused = await at.peer.call("depot", "pay", "o9", token=unit.params.token)
            assert refused.code == "lease_lost"  # for the lock that it said it had, and had not
            at.peer.answer(unit, "paid")
            assert (await waits[0]).value["epoch"] > epoch

    play(story)


def test_nobody_waits_for_holders_that_do_not_come_back() -> None:
    """After a restart the time for claims ends, and then everything is free."""

    async def story() -> None:
        store = MemoryStore()
        async with gate(store) as platform:
            at = Desk(platform)
            assert (await at.lock(await at.unit(), "stock")).ok
            await asyncio.sleep(1)
            at.peer.leave()
            at.client.leave()
        async with gate(store, seed=2) as platform:
            other = Desk(platform, "depot")
            began = asyncio.get_running_loop().time()
            assert (await other.lock(await other.unit(), "stock", timeout_ms=20_000)).ok
            assert 9 < asyncio.get_running_loop().time() - began < 11

    play(story)


def test_tenants_share_no_lock() -> None:
    """A name of one tenant is nothing to another."""

    async def story() -> None:
        async with desk() as at:
            assert (await at.client.lock("a", scope="session")).ok
            acme = Identity(tenant="acme", name="web", scopes=frozenset({SUBMIT}))
            theirs = WirePeer(at.platform, "web", identity=acme).connect()
            assert (await theirs.lock("a", scope="session")).ok

    play(story)
