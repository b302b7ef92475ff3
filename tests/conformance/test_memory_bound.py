"""What only the stores in memory have: a bound instead of a disk."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.adapters.memory import MemorySpanStore, MemoryStore
from agentgate.errors import StoreBroke
from agentgate.testing.conformance.opened import opened
from agentgate.testing.conformance.requests import NOW, TTL_S, change, changed, claim, claimed, state_of
from agentgate.testing.conformance.spans import span


def test_a_full_store_refuses_new_keys_only() -> None:
    """B14: at the bound a new key is refused with what to do; keys that are there go on, and a sweep makes room."""

    async def main() -> None:
        async with opened(MemoryStore(records_max=2)) as store:
            await claimed(store, claim("A-1", unit="u1"), claim("A-2", unit="u2"))
            with pytest.raises(StoreBroke, match="full at 2 records: use"):
                await claimed(store, claim("A-3", unit="u3"))
            assert await state_of(store, "A-3") == "none"
            assert await changed(store, change("done", "A-1", unit="u1")) == [True]
            assert await store.sweep(NOW + TTL_S, 10) == 1
            assert await claimed(store, claim("A-3", unit="u3")) == [True]

    asyncio.run(main())


def test_the_newest_spans_stay() -> None:
    """B14: spans beyond the bound push out the oldest."""

    async def main() -> None:
        async with opened(MemorySpanStore(spans_max=2)) as store:
            await store.write([span("s1"), span("s2"), span("s3")])
        assert [item.span_id for item in store.spans] == ["s2", "s3"]

    asyncio.run(main())
