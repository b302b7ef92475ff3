"""Locks over lost connections and restarts of the gate (DESIGN 4.4, 4.5)."""

from __future__ import annotations

import asyncio

from agentgate.adapters.memory import MemoryStore
from agentgate.model.link import LockReport
from tests.sim.lock_desk import Desk, desk, held, locks_in_use, moment
from tests.sim.wire_peer import gate, play


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
