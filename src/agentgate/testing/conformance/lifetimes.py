"""What a starting gateway gets, and what time does to records."""

from __future__ import annotations

from collections.abc import Callable

from agentgate.model import Card, Route, RouteSnapshot, Skill
from agentgate.ports.store import Store
from agentgate.testing.conformance.opened import on_place, on_store, opened
from agentgate.testing.conformance.requests import NOW, TTL_S, change, changed, claim, claimed, key, state_of


class LifetimeTests:
    """Part of `StoreSuite`."""

    @on_place
    async def test_epochs_grow_with_every_start(self, make_store: Callable[[], Store]) -> None:
        """Each start of a gateway gets a higher epoch, across reopening; another gateway counts for itself."""
        async with opened(make_store()) as store:
            first = [(await store.begin("one", "s", NOW)).epoch for _ in range(2)]
            other = (await store.begin("two", "s", NOW)).epoch
        async with opened(make_store()) as store:
            third = (await store.begin("one", "s", NOW)).epoch
        assert [*first, third] == [1, 2, 3]
        assert other == 1

    @on_place
    async def test_the_first_secret_stays(self, make_store: Callable[[], Store]) -> None:
        """The secret of the first start is handed to every later one, so that unit tokens survive restarts."""
        async with opened(make_store()) as store:
            assert (await store.begin("one", "first", NOW)).secret == "first"  # noqa: S105 - the one handed in
        async with opened(make_store()) as store:
            assert (await store.begin("two", "second", NOW)).secret == "first"  # noqa: S105 - the one handed in

    @on_place
    async def test_time_never_goes_back(self, make_store: Callable[[], Store]) -> None:
        """A start gets at least the time that an earlier start or sweep has seen."""
        async with opened(make_store()) as store:
            assert (await store.begin("one", "s", NOW)).now == NOW
            await store.sweep(NOW + 60, 10)
        async with opened(make_store()) as store:
            assert (await store.begin("one", "s", NOW - 3600)).now == NOW + 60

    @on_store
    async def test_settled_records_live_for_their_time(self, store: Store) -> None:
        """C3: a settled record is there for 24 h from its answer and then is not; the key is free again."""
        await store.begin("one", "s", NOW)
        await claimed(store, claim())
        await changed(store, change("done"), now=NOW + 10)
        assert await state_of(store, now=NOW + 10 + TTL_S - 1) == "done"
        assert await state_of(store, now=NOW + 10 + TTL_S) == "none"
        [answer] = await store.claim([claim(unit="u2")], "gateway", 1, NOW + 10 + TTL_S)
        assert answer.granted
        assert (answer.record.epoch, answer.record.first_seen_at) == (1, NOW + 10 + TTL_S)

    @on_store
    async def test_sweep_deletes_what_has_expired(self, store: Store) -> None:
        """A sweep deletes settled records whose time is up, the oldest first and no more than it may, and says so."""
        await store.begin("one", "s", NOW)
        for number in range(3):
            await claimed(store, claim(f"A-{number}", unit=f"u{number}"))
            await changed(store, change("failed", f"A-{number}", unit=f"u{number}"), now=NOW + number)
        assert await store.sweep(NOW + TTL_S - 1, 10) == 0
        late = NOW + TTL_S + 1.5
        assert [await store.sweep(late, 1), await store.sweep(late, 10), await store.sweep(late, 10)] == [1, 1, 0]
        assert [await state_of(store, f"A-{number}", NOW) for number in range(3)] == ["none", "none", "failed"]

    @on_store
    async def test_open_records_do_not_expire(self, store: Store) -> None:
        """C3: running records are extended while the work is active, unknown ones stay until somebody knows."""
        await store.begin("one", "s", NOW)
        await claimed(store, claim("running", unit="u1"), claim("unknown", unit="u2"))
        await changed(store, change("lost", "unknown", unit="u2"))
        late = NOW + 10 * TTL_S
        assert await state_of(store, "running", late) == "running"
        assert await store.sweep(late, 10) == 0
        assert [await state_of(store, name, late) for name in ("running", "unknown")] == ["running", "unknown"]
        [running] = await store.lookup([key("running")], late)
        assert running is not None
        assert running.expires_at == late + TTL_S

    @on_place
    async def test_a_jump_of_the_clock_spares_records(self, make_store: Callable[[], Store]) -> None:
        """R: after a start with the clock far ahead, what was live before lives for one more lifetime."""
        async with opened(make_store()) as store:
            await store.begin("one", "s", NOW)
            await claimed(store, claim())
            await changed(store, change("done"))
        jumped = NOW + 400 * TTL_S
        async with opened(make_store()) as store:
            assert (await store.begin("one", "s", jumped)).now == jumped
            assert await store.sweep(jumped, 10) == 0
            assert await claimed(store, claim(unit="u2"), now=jumped) == [False]
        async with opened(make_store()) as store:
            await store.begin("one", "s", jumped + 60)
            assert await state_of(store, now=jumped + TTL_S - 1) == "done"
            assert await state_of(store, now=jumped + TTL_S) == "none"
            assert await store.sweep(jumped + TTL_S, 10) == 1

    @on_place
    async def test_the_newest_routes_stay(self, make_store: Callable[[], Store]) -> None:
        """A4: the newest snapshot survives; an older one does not replace it."""
        card = Card(agent="stock", tier="core", skills=(Skill(task_type="reserve", input_schema={"type": "object"}),))
        new = RouteSnapshot(version=7, routes=(Route(card=card, instances=("i1", "i2")),))
        async with opened(make_store()) as store:
            assert await store.load_routes() == RouteSnapshot()
            await store.save_routes(new)
            await store.save_routes(RouteSnapshot(version=6))
            assert await store.load_routes() == new
        async with opened(make_store()) as store:
            assert await store.load_routes() == new
            await store.save_routes(RouteSnapshot(version=8))
            assert await store.load_routes() == RouteSnapshot(version=8)
