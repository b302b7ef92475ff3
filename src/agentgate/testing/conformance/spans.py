"""What every `SpanStore` has to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentgate.model import Span
from agentgate.ports.store import SpanStore
from agentgate.testing.conformance.opened import on_place, on_store, opened

NOON = 1_800_014_400.0  # 2027-01-15 12:00 UTC
DAY_S = 86_400.0


def span(span_id: str, trace_id: str = "t1", **fields: Any) -> Span:
    """A span."""
    base: dict[str, Any] = {
        "kind": "call",
        "call_id": f"c-{span_id}",
        "caller": "order",
        "target": "stock",
        "task_type": "reserve",
        "started_at": NOON,
    }
    return Span(trace_id=trace_id, span_id=span_id, **(base | fields))


class SpanStoreSuite:
    """Subclass it and override `make_store`; `keeps_days` says whether `sweep` deletes by age."""

    keeps_days = True

    @pytest.fixture
    def make_store(self) -> Callable[[], SpanStore]:
        """Makes a store, not open yet; every call within one test makes it on the same place."""
        raise NotImplementedError

    @on_place
    async def test_spans_come_back_as_they_went_in(self, make_store: Callable[[], SpanStore]) -> None:
        """H1: every field of a span is there when it is asked for, after reopening too."""
        full = span(
            "s1",
            parent_id="s0",
            agent="stock",
            instance="i1",
            unit="u1",
            business_key="A-1",
            action="undo",
            key="order:reserve:A-1:undo",
            attempts=2,
            wait_ms=1.5,
            handler_ms=1.0,
            timeout_ms=10_000.0,
            status="failed",
            code="rejected",
            fault="rejected",
            detail="sold out",
            sent=True,
            breaker="closed",
            notes=("would_limit", "halfway"),
            request='{"sku": "你好"}',
            response="'; --",
        )
        async with opened(make_store()) as store:
            await store.write([full, span("s2", "t2")])
            await store.write([])
            assert await store.chain("t1", 10) == [full]
        async with opened(make_store()) as store:
            assert await store.chain("t1", 10) == [full]

    @on_store
    async def test_a_chain_is_found_by_trace_and_by_key(self, store: SpanStore) -> None:
        """H1: a trace id, a key as shown or a business key lead to all spans of the traces they occur in."""
        key = "order:reserve:A-1:run"
        await store.write([span("s1"), span("s3", "t2", business_key="A-1", key=key), span("s5", "t3")])
        await store.write([span("s2", business_key="A-1"), span("s4", "t2", kind="attempt", attempt=1)])
        assert [item.span_id for item in await store.chain("t1", 10)] == ["s1", "s2"]
        assert [item.span_id for item in await store.chain(key, 10)] == ["s3", "s4"]
        assert [item.span_id for item in await store.chain("A-1", 10)] == ["s1", "s2", "s3", "s4"]
        for nothing in ("A-2", "", "s1", "order", "A", "*", '"', "t1 OR t2", "%"):
            assert await store.chain(nothing, 10) == []

    @on_store
    async def test_tenants_find_nothing_of_one_another(self, store: SpanStore) -> None:
        """I6: the same trace, key and business key in two tenants are two chains, also within one write."""
        names = {"business_key": "A-1", "key": "order:reserve:A-1:run"}
        await store.write([span("s1", **names), span("s2", tenant="blue", **names), span("s3", "t2", tenant="blue")])
        for name in ("t1", "A-1", "order:reserve:A-1:run"):
            assert [item.span_id for item in await store.chain(name, 10)] == ["s1"]
            assert [item.span_id for item in await store.chain(name, 10, "blue")] == ["s2"]
        await store.write([span("s4", tenant="blue", business_key="B-1")])
        for foreign in ("t2", "B-1"):  # the second one would lead to a trace of which both have spans
            assert await store.chain(foreign, 10) == []
        assert await store.chain("t1", 10, "red") == []

    @on_store
    async def test_a_chain_is_in_order_of_start(self, store: SpanStore) -> None:
        """H1: spans come by their start, a call before the attempts that start with it, and no more than asked for."""
        await store.write([span("c", started_at=NOON + 2), span("b", kind="attempt", attempt=1, started_at=NOON + 1)])
        await store.write([span("d", started_at=NOON + 1), span("a", started_at=NOON + 3)])
        await store.write([span("e", kind="attempt", attempt=2, started_at=NOON + 1)])
        assert [item.span_id for item in await store.chain("t1", 10)] == ["d", "b", "e", "c", "a"]
        assert [item.span_id for item in await store.chain("t1", 2)] == ["d", "b"]

    @on_store
    async def test_a_chain_may_cross_midnight(self, store: SpanStore) -> None:
        """H1: a chain is whole, whichever days its spans started on."""
        starts = [NOON + hours * 3600 for hours in (0, 11.9, 12.1, 36.5)]
        await store.write([span(f"s{n}", started_at=start) for n, start in enumerate(starts)])
        assert [item.span_id for item in await store.chain("t1", 10)] == ["s0", "s1", "s2", "s3"]

    @on_store
    async def test_many_spans_are_searched_whole(self, store: SpanStore) -> None:
        """A trace is found among many others, wherever in time it was written."""
        traces = 40
        for batch in range(20):
            await store.write([span(f"s{batch}-{n}", f"t{n}", started_at=NOON + batch) for n in range(traces)])
        for n in (0, traces - 1):
            assert [item.started_at - NOON for item in await store.chain(f"t{n}", 100)] == list(range(20))

    @on_store
    async def test_old_days_are_deleted(self, store: SpanStore) -> None:
        """Spans of days beyond the retention time go, the others stay."""
        await store.write([span("old"), span("new", started_at=NOON + 30 * DAY_S)])
        gone = await store.sweep(NOON + 30 * DAY_S)
        assert gone == (1 if self.keeps_days else 0)
        kept = [item.span_id for item in await store.chain("t1", 10)]
        assert kept == (["new"] if self.keeps_days else ["old", "new"])
        assert await store.sweep(NOON + 30 * DAY_S) == 0
