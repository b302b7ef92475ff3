"""What a store finds."""

from __future__ import annotations

from collections.abc import Callable

from agentgate.model import LedgerEvent, Outcome, RecordState
from agentgate.ports.store import Store
from agentgate.testing.conformance.opened import on_place, on_store, opened
from agentgate.testing.conformance.requests import NOW, TTL_S, change, changed, claim, claimed, key

PAGE = 2


class ReadingTests:
    """Part of `StoreSuite`."""

    @on_store
    async def test_look_up_answers_in_order(self, store: Store) -> None:
        """One answer a key, in the order asked, also when a key is asked twice or is not there."""
        await claimed(store, claim("A-1", unit="u1"), claim("A-2", unit="u2"))
        asked = [key("A-2"), key("nobody"), key("A-1"), key("A-2")]
        records = await store.lookup(asked, NOW)
        assert [record and record.key.business_key for record in records] == ["A-2", None, "A-1", "A-2"]
        assert await store.lookup([], NOW) == []

    @on_place
    async def test_open_units_are_found(self, make_store: Callable[[], Store]) -> None:
        """A running or lost unit leads to its record, after a restart too; one that has ended leads nowhere."""
        async with opened(make_store()) as store:
            units = ["running", "lost", "done", "not_sent"]
            await claimed(store, *(claim(unit, unit=unit) for unit in units))
            await claimed(store, *(claim("many", unit=unit, repeatable=True) for unit in ("m1", "m2", "m3")))
            events: tuple[LedgerEvent, ...] = ("lost", "done", "not_sent")
            for event in events:
                await changed(store, change(event, event, unit=event))
            await changed(store, change("lost", "many", unit="m2"))
        for store in (make_store(), make_store()):
            async with opened(store):
                asked = ["m3", "nobody", *units, "m1", "m2"]
                found = await store.find_units(asked)
                names = [record and record.key.business_key for record in found]
                assert names == ["many", None, "running", "lost", None, None, "many", None]
                assert await store.find_units([]) == []

    @on_place
    async def test_a_unit_is_found_no_longer_than_it_is_open(self, make_store: Callable[[], Store]) -> None:
        """What a store knows of open units follows every change within one life of it."""
        async with opened(make_store()) as store:
            events: dict[str, LedgerEvent] = {"u1": "not_sent", "u2": "failed"}
            for unit, event in events.items():
                await claimed(store, claim(unit=unit))
                [record] = await store.find_units([unit])
                assert record is not None
                await changed(store, change(event, unit=unit))
                assert await store.find_units([unit]) == [None]
            await claimed(store, claim(unit="u3", again=True))
            assert [record and record.epoch for record in await store.find_units(["u2", "u3"])] == [None, 2]

    @on_place
    async def test_running_records_come_in_pages(self, make_store: Callable[[], Store]) -> None:
        """A starting gateway reads what runs, in key order, page by page, and nothing else."""
        names = ["B", "a", "A-10", "A-2", "ä", "z"]
        events: tuple[LedgerEvent, ...] = ("done", "failed", "lost", "not_sent", "done", "lost")
        async with opened(make_store()) as store:
            await claimed(store, *(claim(name, unit=name) for name in names))
            await claimed(store, *(claim(f"{name}-ended", unit=f"{name}-ended") for name in names))
            for name, event in zip(names, events, strict=True):
                await changed(store, change(event, f"{name}-ended", unit=f"{name}-ended"))
        async with opened(make_store()) as store:
            pages = [await store.open_records(None, 4)]
            pages.append(await store.open_records(pages[0][-1].key, 4))
            assert await store.open_records(pages[1][-1].key, 4) == []
        assert [len(page) for page in pages] == [4, 2]
        assert [record.key.business_key for page in pages for record in page] == sorted(names)

    @on_place
    async def test_records_are_listed_between_two_keys(self, make_store: Callable[[], Store]) -> None:
        """An operator sees every live record within the bounds, in key order, page by page, of one state or of all."""
        names = ["B", "a", "A-10", "A-2", "ä", "z"]
        events: tuple[LedgerEvent | None, ...] = ("done", "failed", "lost", None, "failed", "done")
        async with opened(make_store()) as store:
            await claimed(store, *(claim(name, unit=name) for name in names))
            await claimed(store, *(claim(unit=tenant, key=key("other", tenant=tenant)) for tenant in ("a", "e")))
            await claimed(store, claim(unit="t", key=key("other", target="stock2")))
            reports = [change(event, name, unit=name) for name, event in zip(names, events, strict=True) if event]
            await changed(store, *reports)
        few: dict[RecordState | None, list[str]] = {"unknown": ["A-10"], "running": ["A-2"]}
        states = few | {None: sorted(names), "done": ["B", "z"], "failed": ["a", "ä"]}
        async with opened(make_store()) as store:
            for state, wanted in states.items():
                found: list[str] = []
                after, before = key("", caller="", task_type="", action=""), key(target="stock\0")
                while page := await store.list_records(after, before, state, NOW, PAGE):
                    assert len(page) <= PAGE
                    found.extend(record.key.business_key for record in page)
                    after = page[-1].key
                assert found == wanted

    @on_store
    async def test_what_is_listed_is_light_and_live(self, store: Store) -> None:
        """Payloads and values stay in the store, errors are shown; what has expired is no record any more."""
        await claimed(store, claim("A-1", unit="u1", payload="large"), claim("A-2", unit="u2"), claim("A-3", unit="u3"))
        await claimed(store, claim("A-4", unit="u4", payload="large"))
        await changed(
            store, change("done", "A-1"), change("failed", "A-2", unit="u2"), change("lost", "A-3", unit="u3")
        )
        bounds = key("", caller=""), key("z")
        done, failed, unknown, running = await store.list_records(*bounds, None, NOW, 10)
        assert (done.outcome, done.payload, running.payload) == (Outcome(), None, None)
        assert failed.outcome is not None
        assert failed.outcome.code == "rejected"
        assert [record.state for record in (done, failed, unknown, running)] == ["done", "failed", "unknown", "running"]
        late = NOW + TTL_S
        assert await store.list_records(*bounds, None, late, 10) == [unknown, running]
        assert await store.list_records(*bounds, "done", late, 10) == []
        assert await store.list_records(*bounds, "failed", late, 10) == []
        assert await store.list_records(*bounds, "unknown", late, 10) == [unknown]
