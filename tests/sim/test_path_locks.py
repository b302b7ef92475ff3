"""Locks on the real path and on virtual time: turns, ends on every path, leases, who may ask (DESIGN 4.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from agentgate.core.locks import EPOCH_BITS
from agentgate.model import SUBMIT, Identity
from agentgate.server.view import GateView
from tests.sim.lock_desk import SKILLS, Desk, desk, held, locks_in_use, moment
from tests.sim.wire_peer import Invoked, WirePeer, gate, play


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
            assert f" (unit {holder.unit}) has it" in outcome.error.detail
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


def test_a_session_lock_of_a_caller_is_no_deadlock() -> None:
    """D3: it is not its unit that gives it back, so who is called by that unit may wait for it."""

    async def story() -> None:
        async with desk() as at:
            other = Desk(at.platform, "depot")
            unit = await at.unit()
            assert (await at.lock(unit, "stock", scope="session")).ok
            first = at.peer.last_lock
            below = at.peer.call("depot", "pay", "o9", token=unit.params.token)
            waits = other.lock(await other.peer.next(), "stock")
            await asyncio.sleep(5)
            assert not waits.done()
            at.peer.unlock(first)
            assert (await waits).ok
            assert not below.done()

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


@pytest.mark.parametrize("ending", ["granted", "timed out", "given up", "unit ended", "process gone"])
def test_a_unit_that_waits_for_a_lock_lends_its_slot(ending: str) -> None:
    """DESIGN 4.3: as while it waits for a call; however the wait ends, it is over for the slot as well."""

    async def story() -> None:
        async with gate() as platform:
            bank, depot = Desk(platform, concurrency=1), Desk(platform, "depot")
            resting, slots = platform.gateway.resting, platform.gateway.policies.slots
            assert (await depot.lock(await depot.unit(), "stock")).ok
            unit = await bank.unit()
            waits = bank.lock(unit, "stock", timeout_ms=8000)
            await moment()
            assert (len(resting), slots.outstanding("bank")) == (1, 0)
            bank.peer.answer(await bank.unit(), "paid")  # in the only slot there is
            if ending == "granted":
                depot.peer.unlock(depot.peer.last_lock)
                assert (await waits).ok
            elif ending == "timed out":
                assert (await waits).code == "deadline_exceeded"
            elif ending == "given up":
                bank.peer.unlock(bank.peer.last_lock)
            elif ending == "unit ended":
                bank.peer.answer(unit, "paid")
            else:
                bank.peer.leave()
                await asyncio.sleep(5)
            await moment()
            goes_on = ending in ("granted", "timed out", "given up")
            assert (len(resting), slots.outstanding("bank")) == (0, int(goes_on))

    play(story)


def test_it_is_shown_who_holds_and_who_waits() -> None:
    """D4: operators see each lock of their tenant with its holders, those who wait, epochs and times."""

    async def story() -> None:
        async with desk() as at:
            gateway, directory = at.platform.gateway, at.platform.directory
            view = GateView(gateway=gateway, directory=directory, spans=at.platform.spans, clock=at.platform.clock)
            holder, waiter = await at.unit(), await at.unit()
            epoch = (await at.lock(holder, "b")).value["epoch"]
            _ = at.lock(waiter, "a", "b", mode="shared", timeout_ms=20_000)
            await asyncio.sleep(1)
            kept, wanted = view.locks("default")
            assert (kept.name, kept.held, wanted.name) == ("a", (), "b")
            [has], [waits] = wanted.held, wanted.waiting
            assert kept.waiting == (waits,)
            assert (has.owner, has.instance, has.unit, has.epoch) == ("bank", at.peer.instance, holder.unit, epoch)
            assert has.waits_s is None
            assert has.since_s == pytest.approx(1.0, abs=0.1)
            assert has.lease_s is not None
            assert 28 < has.lease_s <= 30
            assert (waits.unit, waits.mode, waits.epoch, waits.lease_s) == (waiter.unit, "shared", None, None)
            assert waits.waits_s is not None
            assert 15 < waits.waits_s < 22
            assert view.locks("acme") == []

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
