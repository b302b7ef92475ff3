"""Who may run a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from agentgate.model import Claim, LedgerEvent, RecordState, UnitRef
from agentgate.ports.store import Store
from agentgate.testing.conformance.opened import on_place, on_store, opened
from agentgate.testing.conformance.requests import NOW, TTL_S, change, changed, claim, claimed, key, state_of

PAYLOADS: tuple[Any, ...] = (
    None,
    True,
    -1,
    0.1,
    2**70,
    "",
    "\x00 \x1f ' \" \\ % ? 你好 \N{SMILING FACE WITH OPEN MOUTH}",
    [],
    {},
    {"a": [1, 1.0, "1", None, {"b": [[]]}], "": {"nested": {"deep": [True, False]}}},
    "x" * 262_144,
)

# How a claimed key gets into a state.
REPORT_FOR: dict[RecordState, LedgerEvent | None] = {
    "running": None,
    "done": "done",
    "failed": "failed",
    "unknown": "lost",
}


class ClaimTests:
    """Part of `StoreSuite`."""

    @on_place
    async def test_a_granted_claim_is_kept(self, make_store: Callable[[], Store]) -> None:
        """What a claim opens is there with everything in it, also after the store was closed and opened again."""
        asked = claim(payload={"sku": 1}, repeatable=True, trace_id="t" * 32, parent_unit="p")
        async with opened(make_store()) as store:
            [answer] = await store.claim([asked], "gateway", 3, NOW)
        assert answer.granted
        async with opened(make_store()) as store:
            [record] = await store.lookup([key()], NOW)
        assert record == answer.record
        assert record is not None
        assert (record.state, record.epoch, record.units) == ("running", 1, (UnitRef(unit="u1", instance="i1"),))
        assert (record.gateway, record.gateway_epoch) == ("gateway", 3)
        assert (record.fingerprint, record.agent, record.repeatable) == ("f1", "stock", True)
        assert (record.payload, record.trace_id, record.parent_unit) == ({"sku": 1}, "t" * 32, "p")
        assert (record.first_seen_at, record.expires_at) == (NOW, NOW + TTL_S)

    @on_store
    async def test_payloads_come_back_as_they_went_in(self, store: Store) -> None:
        """Every JSON value survives: types, nesting, any text, a quarter of a megabyte."""
        claims = [claim(f"A-{n}", unit=f"u{n}", payload=payload) for n, payload in enumerate(PAYLOADS)]
        assert all(await claimed(store, *claims))
        records = await store.lookup([item.key for item in claims], NOW)
        assert [repr(record and record.payload) for record in records] == [repr(payload) for payload in PAYLOADS]

    @on_store
    async def test_keys_differ_in_any_part(self, store: Store) -> None:
        """Every part of a key counts, and no text in one part can be taken for another."""
        texts = ("a", "A", "a ", "ä", "a\x1f", "a\tb", "'; --", '["a"]', "%", "")
        base = {part: key(**{part: text}) for part in key()._fields for text in texts}
        keys = {key(**{part: text}) for part in base for text in texts}
        assert all(await claimed(store, *(claim(unit=repr(item), key=item) for item in sorted(keys))))
        records = await store.lookup(sorted(keys), NOW)
        assert [record and record.key for record in records] == sorted(keys)

    @on_store
    async def test_a_taken_key_is_refused_with_what_stands_there(self, store: Store) -> None:
        """C2: a claim of a running, done, failed or unknown key is answered with its record and changes nothing."""
        for state, report in REPORT_FOR.items():
            [first] = await store.claim([claim(state, unit=f"{state}-1")], "gateway", 1, NOW)
            standing = first.record
            if report is not None:
                [answer] = await store.change([change(report, state, unit=f"{state}-1")], NOW)
                assert answer.record is not None
                standing = answer.record
            [second] = await store.claim([claim(state, unit=f"{state}-2")], "gateway", 1, NOW + 1)
            assert (second.granted, second.record) == (False, standing)
            assert await store.lookup([key(state)], NOW) == [standing]

    @on_store
    async def test_of_one_batch_the_first_wins(self, store: Store) -> None:
        """C2: claims of one key within one batch take effect in order; answers come in the order of the requests."""
        claims = [claim(f"A-{n % 5}", unit=f"u{n}") for n in reversed(range(20))]
        answers = await store.claim(claims, "gateway", 1, NOW)
        assert [answer.granted for answer in answers] == [True] * 5 + [False] * 15
        for asked, answer in zip(claims, answers, strict=True):
            assert answer.record.key == asked.key
            assert answer.granted == (answer.record.units[0].unit == asked.unit)

    @on_store
    async def test_of_many_claimants_one_wins(self, store: Store) -> None:
        """C2: of claims that arrive at the same time in batches of their own, exactly one is granted."""
        granted: list[str] = []

        async def contend(name: str) -> None:
            claims = [claim("A-1", unit=f"{name}-1"), claim("A-2", unit=f"{name}-2")]
            answers = await store.claim(claims, name, 1, NOW)
            granted.extend(answer.record.key.business_key for answer in answers if answer.granted)

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(contend(f"g{number}"))
        assert sorted(granted) == ["A-1", "A-2"]

    @on_store
    async def test_a_large_batch_is_one_batch(self, store: Store) -> None:
        """A batch may be larger than what one statement of a database takes; empty ones are nothing."""
        claims = [claim(f"A-{n}", unit=f"u{n}") for n in range(2_500)]
        assert all(await claimed(store, *claims))
        assert not any(await claimed(store, *claims, epoch=2))
        assert (await claimed(store), await changed(store)) == ([], [])
        assert all(await changed(store, *(change("done", f"A-{n}", unit=f"u{n}") for n in range(2_500))))

    @on_store
    async def test_a_repeatable_key_takes_more_units(self, store: Store) -> None:
        """C4: the gateway and epoch that run a repeatable key may add units; nobody else, and not with another body."""

        def more(unit: str, fingerprint: str = "f1") -> Claim:
            return claim(unit=unit, repeatable=True, fingerprint=fingerprint)

        assert await claimed(store, more("u1"), more("u2")) == [True, True]
        assert await claimed(store, more("u3", fingerprint="f2")) == [False]
        assert await claimed(store, more("u4"), epoch=2) == [False]
        [answer] = await store.claim([more("u5")], "gateway", 1, NOW + 9)
        assert [ref.unit for ref in answer.record.units] == ["u1", "u2", "u5"]
        assert (answer.record.epoch, answer.record.expires_at) == (1, NOW + 9 + TTL_S)

    @on_store
    async def test_again_opens_what_failed(self, store: Store) -> None:
        """`again` re-runs a failure under the next epoch, and neither done nor unknown work."""
        for state, report in REPORT_FOR.items():
            await claimed(store, claim(state, unit=state))
            if report is not None:
                await changed(store, change(report, state, unit=state))
        granted = await claimed(store, *(claim(state, unit=f"{state}-2", again=True) for state in REPORT_FOR))
        assert granted == [state == "failed" for state in REPORT_FOR]
        [record] = await store.lookup([key("failed")], NOW)
        assert record is not None
        assert (record.epoch, record.outcome) == (2, None)

    @on_store
    async def test_a_repeated_claim_finds_its_own_unit(self, store: Store) -> None:
        """A claim whose answer got lost may be asked again, and does not lose against itself."""
        assert await claimed(store, claim()) == [True]
        assert await claimed(store, claim()) == [True]
        assert await state_of(store) == "running"
