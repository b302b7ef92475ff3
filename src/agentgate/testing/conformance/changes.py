"""What becomes of a key that runs."""

from __future__ import annotations

from collections.abc import Callable

from agentgate.model import LedgerEvent, Outcome, Problem
from agentgate.ports.store import Store
from agentgate.testing.conformance.opened import on_place, on_store, opened
from agentgate.testing.conformance.requests import NOW, TTL_S, change, changed, claim, claimed, key, state_of

# Reports of the only unit of a write, one after the other, and the state of the key at the end.
STORIES: tuple[tuple[tuple[LedgerEvent, ...], str], ...] = (
    (("done",), "done"),
    (("failed",), "failed"),
    (("not_sent",), "none"),
    (("lost",), "unknown"),
    (("not_done",), "running"),
    (("lost", "done"), "done"),
    (("lost", "failed"), "failed"),
    (("lost", "not_sent"), "none"),
    (("lost", "not_done"), "none"),
    (("lost", "lost"), "unknown"),
    (("done", "failed"), "done"),
    (("failed", "done"), "failed"),
    (("done", "lost"), "done"),
    (("failed", "not_sent"), "failed"),
    (("not_sent", "done"), "none"),
    (("lost", "not_done", "done"), "none"),
)


class ChangeTests:
    """Part of `StoreSuite`."""

    @on_store
    async def test_reports_lead_where_the_table_says(self, store: Store) -> None:
        """C4: the reports of a unit move its key along the ledger's table, one batch a report or all in one batch."""
        for number, (events, state) in enumerate(STORIES):
            one, other = f"A-{number}", f"B-{number}"
            await claimed(store, claim(one, unit=one), claim(other, unit=other))
            apart = [await changed(store, change(event, one, unit=one)) for event in events]
            together = await changed(store, *(change(event, other, unit=other) for event in events))
            assert [accepted for [accepted] in apart] == together
            assert (await state_of(store, one), await state_of(store, other)) == (state, state), events

    @on_place
    async def test_a_settled_record_is_kept(self, make_store: Callable[[], Store]) -> None:
        """C2: the outcome is there after a restart, whole, and the payload is not kept beyond the answer."""
        problem = Problem(
            code="rejected", fault="rejected", sent=True, retry_after_ms=5, advice="no", detail="sold out"
        )
        outcomes = {"done": Outcome(value=[1, {"b": None}], key="k"), "failed": Outcome(error=problem, value=0)}
        async with opened(make_store()) as store:
            for name, outcome in outcomes.items():
                await claimed(store, claim(name, unit=name, payload={"sku": 1}))
                event: LedgerEvent = "done" if name == "done" else "failed"
                await changed(store, change(event, name, unit=name, outcome=outcome), now=NOW + 5)
        async with opened(make_store()) as store:
            for name, outcome in outcomes.items():
                [record] = await store.lookup([key(name)], NOW + 5)
                assert record is not None
                assert (record.state, record.outcome, record.units, record.payload) == (name, outcome, (), None)
                assert (record.first_seen_at, record.expires_at) == (NOW, NOW + 5 + TTL_S)

    @on_store
    async def test_answers_say_what_stands_after_them(self, store: Store) -> None:
        """The answer to a report carries the record as a look-up finds it, whether the report counted or not."""
        await claimed(store, claim())
        events: tuple[LedgerEvent, ...] = ("lost", "done", "failed")
        for event in events:
            [answer] = await store.change([change(event)], NOW)
            assert [answer.record] == await store.lookup([key()], NOW)
        [answer] = await store.change([change("done", "never-claimed")], NOW)
        assert (answer.accepted, answer.record) == (False, None)

    @on_store
    async def test_late_answers_of_another_run_do_not_count(self, store: Store) -> None:
        """C4: answers of an earlier epoch, of a unit that is not open, of another run of a freed key change nothing."""
        await claimed(store, claim(unit="u1"))
        await changed(store, change("failed", unit="u1"))
        await claimed(store, claim(unit="u2", again=True))
        assert await changed(store, change("done", unit="u1"), change("done", unit="u2")) == [False, False]
        assert await changed(store, change("not_sent", unit="u2", epoch=2)) == [True]
        await claimed(store, claim(unit="u3"))
        assert await changed(store, change("done", unit="u2", epoch=2), change("done", unit="u2")) == [False, False]
        assert await state_of(store) == "running"

    @on_store
    async def test_the_first_answer_of_any_unit_settles(self, store: Store) -> None:
        """C4: of several units of a repeatable key the first answer counts; lost ones leave; without any it is free."""
        units = [claim(unit=unit, repeatable=True) for unit in ("u1", "u2", "u3")]
        await claimed(store, *units)
        assert await changed(store, change("lost", unit="u1"), change("done", unit="u1")) == [True, False]
        assert await changed(store, change("done", unit="u3"), change("failed", unit="u2")) == [True, False]
        await claimed(store, *(claim("A-2", unit=unit, repeatable=True) for unit in ("v1", "v2")))
        await changed(store, change("lost", "A-2", unit="v1"), change("not_sent", "A-2", unit="v2"))
        assert (await state_of(store), await state_of(store, "A-2")) == ("done", "none")

    @on_store
    async def test_an_operator_settles_what_nobody_knows(self, store: Store) -> None:
        """A report without a unit decides about an unknown key, and about no other."""
        events: dict[str, LedgerEvent] = {"one": "done", "two": "failed", "three": "not_done"}
        for name, event in events.items():
            await claimed(store, claim(name, unit=name))
            assert await changed(store, change(event, name, unit="")) == [False]
            await changed(store, change("lost", name, unit=name))
            assert await changed(store, change(event, name, unit="")) == [True]
        assert [await state_of(store, name) for name in ("one", "two", "three")] == ["done", "failed", "none"]
