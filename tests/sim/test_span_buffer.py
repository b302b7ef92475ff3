"""Spans wait a moment, are written together, and are dropped in the order of what nobody misses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from agentgate.adapters.memory import MemorySpanStore
from agentgate.errors import StoreBroke
from agentgate.model import Span
from agentgate.runtime.span_buffer import FAILED_S, SpanBuffer, SpanBufferOptions
from agentgate.testing.conformance.spans import span
from agentgate.testing.loop import run_virtual


class LoopClock:
    """The running loop's time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return self.now()


class SlowStore(MemorySpanStore):
    """Takes a tenth of a second for a write, and fails while `broke`."""

    def __init__(self) -> None:
        super().__init__()
        self.broke = False
        self.writes: list[tuple[float, int]] = []

    async def write(self, spans: Sequence[Span]) -> None:
        self.writes.append((round(asyncio.get_running_loop().time(), 6), len(spans)))
        await asyncio.sleep(0.1)
        if self.broke:
            raise StoreBroke("disk full")
        await super().write(spans)


def buffer_of(store: SlowStore, **options: float) -> SpanBuffer:
    return SpanBuffer(store, LoopClock(), SpanBufferOptions(**options))  # type: ignore[arg-type] # whole where it matters


def ids(spans: Sequence[Span]) -> list[str]:
    return [item.span_id for item in spans]


def test_spans_are_written_soon_and_together() -> None:
    """A span waits 20 ms at most for company; a full batch does not wait; what comes during a write is the next one."""

    async def main() -> None:
        store = SlowStore()
        async with buffer_of(store, rows=4) as buffer:
            buffer.record(span("s1"))
            await asyncio.sleep(0.01)
            buffer.record(span("s2"))
            await asyncio.sleep(0.5)
            for number in range(4):
                buffer.record(span(f"t{number}"))
            await asyncio.sleep(0.05)
            for number in range(3):
                buffer.record(span(f"u{number}"))
            await asyncio.sleep(0.5)
            assert store.writes == [(0.02, 2), (0.51, 4), (0.61, 3)]
            assert (buffer.written, buffer.dropped, buffer.waiting) == (9, 0, 0)

    run_virtual(main)


def test_a_query_sees_what_is_not_written_yet() -> None:
    """H1: everything recorded before the question is in the answer, also what a write in progress does not cover."""

    async def main() -> None:
        store = SlowStore()
        async with buffer_of(store) as buffer:
            buffer.record(span("s1"))
            await asyncio.sleep(0.05)  # the first write is under way
            buffer.record(span("s2", key="k"))
            assert ids(await buffer.chain("t1")) == ["s1", "s2"]
            assert ids(await buffer.chain("k", limit=1)) == ["s1"]

    run_virtual(main)


def test_leaving_writes_what_is_left() -> None:
    """A stopping gate writes its last spans, whatever it is stopped by."""
    store = SlowStore()

    async def main() -> None:
        async with buffer_of(store) as buffer:
            for number in range(600):
                buffer.record(span(f"s{number}"))

    run_virtual(main)
    assert len(store.spans) == 600


def test_a_large_round_is_several_writes() -> None:
    """One write has a bound, so that a query reads bounded blocks."""

    async def main() -> None:
        store = SlowStore()
        async with buffer_of(store, rows=600) as buffer:
            for number in range(600):
                buffer.record(span(f"s{number}"))
            await asyncio.sleep(1.0)
            assert [count for _, count in store.writes] == [256, 256, 88]

    run_virtual(main)


def test_at_the_bound_plain_successes_go_first() -> None:
    """B14: the oldest success without a key makes room; errors and keyed calls are dropped last; every drop counts."""

    async def main() -> None:
        store = SlowStore()
        async with buffer_of(store, waiting_max=4, rows=4) as buffer:
            buffer.record(span("under-way"))
            await asyncio.sleep(0.05)
            for item in (span("plain-1"), span("keyed-1", key="k"), span("failed", status="failed")):
                buffer.record(item)
            assert (buffer.waiting, buffer.dropped) == (4, 0)
            buffer.record(span("keyed-2", key="k"))  # plain-1 goes
            buffer.record(span("keyed-3", key="k"))  # nothing plain is left: it goes itself
            buffer.record(span("plain-2"))
            assert (buffer.waiting, buffer.dropped) == (4, 3)
        assert sorted(ids(store.spans)) == ["failed", "keyed-1", "keyed-2", "under-way"]
        assert (buffer.written, buffer.dropped) == (4, 3)

    run_virtual(main)


def test_a_failing_store_is_left_alone_for_a_while() -> None:
    """A write that failed is tried again after a second with everything that came meanwhile; nothing is raised."""

    async def main() -> None:
        store = SlowStore()
        async with buffer_of(store, rows=3) as buffer:
            store.broke = True
            for number in range(3):
                buffer.record(span(f"s{number}"))
            await asyncio.sleep(0.2)
            for number in range(10):
                buffer.record(span(f"t{number}"))
            assert ids(await buffer.chain("t1")) == []  # the question does not wait for a broken store
            store.broke = False
            await asyncio.sleep(2.0)
            assert store.writes == [(0.0, 3), (0.1 + FAILED_S, 13)]
            assert (buffer.written, buffer.dropped) == (13, 0)

    run_virtual(main)


def test_a_store_that_stays_broken_costs_counted_spans() -> None:
    """What cannot be written when the gate stops is counted as dropped, and stopping does not hang."""

    async def main() -> None:
        store = SlowStore()
        store.broke = True
        async with buffer_of(store) as buffer:
            for number in range(5):
                buffer.record(span(f"s{number}"))
            await asyncio.sleep(0.5)
        assert (buffer.written, buffer.dropped) == (0, 5)

    run_virtual(main)


def test_an_asker_that_leaves_takes_nothing_along() -> None:
    """A query that is cancelled while it waits for a write does not cancel the write."""

    async def main() -> None:
        store = SlowStore()
        async with buffer_of(store) as buffer:
            buffer.record(span("s1"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await buffer.chain("t1")
            await asyncio.sleep(0.5)
            assert ids(store.spans) == ["s1"]

    run_virtual(main)


@pytest.mark.parametrize("fields", [{"flush_s": 0.0}, {"rows": 0}, {"rows": 5, "waiting_max": 4}])
def test_options_are_checked(fields: dict[str, float]) -> None:
    """Options that could not work are refused where they are made."""
    with pytest.raises(ValueError, match=next(iter(fields))):
        SpanBufferOptions(**fields)  # type: ignore[arg-type] # whole where it matters
