"""What a store refuses, and what a refusal leaves behind: nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentgate.errors import StoreBadInput, StoreBroke
from agentgate.model import Change, Claim
from agentgate.ports.store import Store
from agentgate.runtime.batcher import Batcher
from agentgate.testing.conformance.opened import on_place, on_store
from agentgate.testing.conformance.requests import NOW, change, changed, claim, claimed, key, state_of

BAD_CLAIMS: tuple[Claim, ...] = (
    claim("bad", unit="bad", payload=object()),
    claim("bad", unit="bad", payload={"half a pair": "\ud800"}),
    claim("bad\0", unit="bad"),
)
BAD_CHANGES: tuple[Change, ...] = (
    change("done", "bad", unit="bad", outcome=None),
    change("failed", "bad", unit="bad", outcome=None),
)


class FailureTests:
    """Part of `StoreSuite`."""

    @on_store
    async def test_a_bad_claim_leaves_nothing_behind(self, store: Store) -> None:
        """What can never be stored is refused as such, and nothing of its batch has happened."""
        for bad in BAD_CLAIMS:
            with pytest.raises(StoreBadInput):
                await store.claim([claim("good", unit="good"), bad], "gateway", 1, NOW)
            assert await store.lookup([key("good"), key("bad")], NOW) == [None, None]
            assert await store.find_units(["good", "bad"]) == [None, None]

    @on_store
    async def test_a_bad_report_leaves_nothing_behind(self, store: Store) -> None:
        """A report without its outcome is refused, and the other reports of its batch have not happened."""
        await claimed(store, claim("good", unit="good"), claim("bad", unit="bad"))
        for bad in BAD_CHANGES:
            with pytest.raises(StoreBadInput):
                await store.change([change("done", "good", unit="good"), bad], NOW)
            assert [await state_of(store, name) for name in ("good", "bad")] == ["running", "running"]
        assert await changed(store, change("done", "good", unit="good")) == [True]

    @on_store
    async def test_one_bad_request_fails_alone(self, store: Store) -> None:
        """Of requests that were merged into one batch, the good ones are served and the bad one is told."""
        async with Batcher[Claim, Any](lambda claims: store.claim(claims, "gateway", 1, NOW)) as batcher:
            answers = [
                batcher.submit(asked)
                for asked in (claim("A-1", unit="u1"), BAD_CLAIMS[0], claim("A-1", unit="u2"), claim("A-2", unit="u3"))
            ]
        errors = [answer.exception() for answer in answers]
        assert [type(error) for error in errors] == [type(None), StoreBadInput, type(None), type(None)]
        assert [answer.result().granted for answer in answers if answer.exception() is None] == [True, False, True]

    @on_place
    async def test_a_closed_store_says_so(self, make_store: Callable[[], Store]) -> None:
        """Before it is opened and after it is closed a store is broke, not silent; closing twice is fine."""
        store = make_store()
        await store.close()
        for _ in range(2):
            with pytest.raises(StoreBroke):
                await store.lookup([key()], NOW)
            with pytest.raises(StoreBroke):
                await store.claim([claim()], "gateway", 1, NOW)
            await store.open()
            await claimed(store, claim())
            await store.close()
            await store.close()
        await store.open()
        assert await state_of(store) == "running"
        await store.close()
