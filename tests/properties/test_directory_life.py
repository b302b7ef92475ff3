"""The directory over restarts of the gate, and what runs beside it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.directory import Directory
from agentgate.directory.directory import VERSION_BLOCK, DirectoryOptions
from agentgate.errors import StoreBroke
from agentgate.model import AS_DECLARED, AgentQuota, AgentSettings, RouteSnapshot, SwitchedOff
from agentgate.testing.loop import run_virtual
from tests.properties.directory_kit import HandClock, Witness, card, move, watched


class LoopClock:
    """The virtual loop's time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return self.now()


# --- over restarts


def test_a_restarted_gate_expects_who_was_there() -> None:
    """A8: after a restart an agent is a route for 10 s; who comes back is told as joined, who does not as lost."""
    before = Directory(HandClock())
    before.hello("default", card("stock", "reserve"), "i1")
    before.hello("default", card("stock", "reserve"), "i2")
    before.hello("default", card("order", "confirm"), "i3")
    clock = HandClock(500.0)
    directory, witness = watched(clock)
    directory.restore(before.snapshot())
    for target in ("stock", "order", "skill:reserve"):
        assert directory.resolve("default", target) is not None
    directory.hello("default", card("stock", "reserve"), "i2")
    directory.seen("i1")
    move(directory, clock, 505.0)
    directory.seen("i2")
    move(directory, clock, 510.0)
    assert witness.told == [("joined", "i2"), ("lost", "i3"), ("lost", "i1")]
    assert [agent.agent for agent in directory.agents()] == ["stock"]


def test_what_an_instance_says_now_counts_before_what_is_remembered() -> None:
    """A new process with a new card decides at once, although remembered ones of before the restart may come back."""
    directory = Directory(HandClock())
    old = Directory(HandClock())
    old.hello("default", card("stock", "reserve", tier="core"), "i1")
    directory.restore(old.snapshot())
    directory.hello("default", card("stock", "reserve"), "i2")
    route = directory.resolve("default", "stock")
    assert route is not None
    assert route.card.tier == "standard"
    assert directory.findings == {}


def test_a_route_without_instances_is_not_remembered() -> None:
    """A stored agent of which no instance is named cannot come back, so it is no route."""
    directory = Directory(HandClock())
    stored = Directory(HandClock())
    stored.hello("default", card("stock"), "i1")
    snapshot = stored.snapshot()
    empty = RouteSnapshot(version=7, routes=(type(snapshot.routes[0])(card=card("stock")),))
    directory.restore(empty)
    assert (directory.resolve("default", "stock"), directory.agents()) == (None, [])


@given(st.integers(0, 3 * VERSION_BLOCK), st.integers(0, 5))
def test_versions_of_two_lives_never_meet(stored: int, unsaved: int) -> None:
    """Versions grow across restarts, also over the changes that the last life could not save."""
    directory = Directory(HandClock())
    directory.restore(RouteSnapshot(version=stored))
    assert directory.snapshot().version > stored + unsaved or stored % VERSION_BLOCK >= VERSION_BLOCK - unsaved - 1


# --- beside the loop


async def live_for(seconds: float) -> tuple[list[tuple[str, str]], list[int]]:
    """An entered directory with two agents: one beats, one is silent from the start."""
    saved: list[int] = []

    async def save(snapshot: RouteSnapshot) -> None:
        saved.append(len(snapshot.routes))

    async def load() -> RouteSnapshot:
        return RouteSnapshot()

    witness = Witness()
    directory = Directory(LoopClock(), save=save, load=load)
    directory.listen(witness)
    async with directory:
        directory.hello("default", card("loud"), "i1")
        directory.hello("default", card("quiet"), "i2")
        for _ in range(int(seconds)):
            await asyncio.sleep(1.0)
            directory.seen("i1")
    return witness.told, saved


def test_the_timer_finds_who_is_silent_and_the_saver_saves_waves() -> None:
    """Entered, the directory needs no tick from outside, and saves a wave of registrations once."""
    told, saved = run_virtual(live_for, 60.0)
    assert told == [("joined", "i1"), ("joined", "i2"), ("away", "i2"), ("lost", "i2")]
    assert saved == [2, 1]


async def live_with_a_failing_store(failures: int) -> tuple[list[int], float]:
    saved: list[int] = []
    loop = asyncio.get_running_loop()

    async def save(snapshot: RouteSnapshot) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreBroke("disk full")
        saved.append(len(snapshot.routes))

    async with Directory(LoopClock(), save=save) as directory:
        directory.hello("default", card("stock"), "i1")
        if failures < 3:
            await asyncio.sleep(8.0)
    return saved, loop.time()


def test_a_store_that_fails_is_asked_again_and_harms_nobody() -> None:
    """A failed save is repeated until it succeeds, and once more at the end."""
    assert run_virtual(live_with_a_failing_store, 2)[0] == [1]
    assert run_virtual(live_with_a_failing_store, 99) == ([], 0.0)


async def leave_with_a_hanging_store() -> float:
    async def save(_: RouteSnapshot) -> None:
        await asyncio.sleep(1e6)

    async with Directory(LoopClock(), save=save) as directory:
        directory.hello("default", card("stock"), "i1")
        await asyncio.sleep(1.0)
    return asyncio.get_running_loop().time()


def test_a_store_that_hangs_does_not_hold_up_the_end() -> None:
    """Leaving gives the last save two seconds, no more."""
    assert run_virtual(leave_with_a_hanging_store) == 3.0


# --- what operators set


OFF = AgentSettings(off=SwitchedOff(by="ada", at=7.0, reason="why"))


def test_what_operators_set_outlives_the_agent_and_the_gate() -> None:
    """A6: an agent that was switched off is off when its processes, or the gate, come back; others stay as they are."""
    clock = HandClock()
    directory = Directory(clock)
    for name in ("stock", "order"):
        directory.hello("default", card(name, "reserve"), f"{name}-1")
    assert directory.configure("other", "stock", OFF) is None
    assert directory.configure("default", "nobody", OFF) is None
    version = directory.snapshot().version
    route = directory.configure("default", "stock", OFF)
    assert route is not None
    assert (route.settings, route.card.skill("reserve") is not None) == (OFF, True)
    assert directory.snapshot().version > version
    directory.drain("stock-1")
    directory.gone("stock-1")
    restarted = Directory(HandClock())
    restarted.restore(directory.snapshot())
    restarted.hello("default", card("stock", "reserve"), "stock-2")
    for life in (directory, restarted):
        [order, stock] = life.agents()
        assert (order.off, stock.off) == (None, OFF.off)
        target = life.resolve("default", "skill:reserve")
        assert target is not None
        assert target.agent == "order", "a capability is looked for where it is on"


def test_an_agent_about_which_nothing_is_left_to_say_is_forgotten() -> None:
    """A6, B14: switched on again while nobody runs it, it is no route any more."""
    directory = Directory(HandClock())
    directory.hello("default", card("stock", "reserve"), "i1")
    directory.configure("default", "stock", OFF)
    directory.gone("i1")
    assert directory.resolve("default", "skill:reserve") is None
    assert directory.resolve("default", "stock") is not None
    directory.configure("default", "stock", AS_DECLARED)
    assert (directory.agents(), directory.snapshot().routes) == ([], ())


def test_a_switch_is_stored_before_it_is_confirmed() -> None:
    """A6: `save_now` returns when the store has it, or raises; then it is tried again."""
    saved: list[RouteSnapshot] = []
    failures = [1, 0, 0, 0]

    async def save(snapshot: RouteSnapshot) -> None:
        if failures.pop(0):
            raise StoreBroke("busy")
        saved.append(snapshot)

    async def story() -> None:
        async with Directory(LoopClock(), save=save) as directory:
            directory.hello("default", card("stock"), "i1")
            directory.configure("default", "stock", OFF)
            with pytest.raises(StoreBroke):
                await directory.save_now()
            await directory.save_now()
            assert saved[-1].routes[0].settings == OFF

    run_virtual(story)
    run_virtual(Directory(LoopClock()).save_now)


def test_who_waits_until_the_routes_are_stored_shares_an_early_save() -> None:
    """A6: a wave of those who wait is one write, soon, however long changes are collected; who changed nothing since
    waits for nothing, and nobody for ever.
    """
    saved: list[int] = []

    async def save(snapshot: RouteSnapshot) -> None:
        await asyncio.sleep(0.5)
        saved.append(len(snapshot.routes))

    async def hang(_: RouteSnapshot) -> None:
        await asyncio.sleep(1e6)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        options = DirectoryOptions(save_delay_s=60.0)
        async with Directory(LoopClock(), options, save=save) as directory:

            async def register(name: str) -> tuple[float, list[int]]:
                directory.hello("default", card(name), name)
                await directory.save_now()
                return loop.time(), list(saved)

            assert await asyncio.gather(*map(register, "abc")) == [(0.52, [3])] * 3
            await directory.save_now()
            assert loop.time() == 0.52
            first = asyncio.ensure_future(register("d"))
            await asyncio.sleep(0.1)  # its save is under way, and has nothing of the next one
            at, written = await register("e")
            assert (round(at, 2), written) == (1.56, [3, 4, 5])
            assert (await first)[1] == [3, 4]
        async with Directory(LoopClock(), options, save=hang) as directory:
            directory.hello("default", card("f"), "f")
            began = loop.time()
            with pytest.raises(StoreBroke, match="within 5 s"):
                await directory.save_now()
            assert loop.time() - began == pytest.approx(5.0)

    run_virtual(story)


def test_a_quota_is_in_force_at_once_and_after_a_restart() -> None:
    """A6: what an operator has set is in the map that the gate reads, until it is taken away again."""
    directory = Directory(HandClock())
    directory.hello("default", card("stock", "reserve"), "i1")
    quotas = directory.quotas
    quota = AgentQuota(units=5, per_s=60)
    directory.configure("default", "stock", AgentSettings(quota=quota))
    assert quotas == {("default", "stock"): quota}
    restarted = Directory(HandClock())
    restarted.restore(directory.snapshot())
    assert restarted.quotas == quotas
    restarted.configure("default", "stock", AS_DECLARED)
    assert restarted.quotas == {}
