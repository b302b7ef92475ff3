"""A batch of requests to the ledger, in order."""

from __future__ import annotations

import pytest

from agentgate.core.ledger import LedgerOptions
from agentgate.core.ledger_batch import LedgerBatch
from agentgate.errors import StoreBadInput
from agentgate.model import Change, Claim, KeyId, Outcome, Record

KEY = KeyId("default", "stock", "order", "reserve", "A-1", "run")


def claim_of(unit: str, key: KeyId = KEY) -> Claim:
    return Claim(key=key, fingerprint="f", agent="stock", unit=unit, instance="i")


def batch_of(*records: Record, now: float = 10.0, horizon: float = 10.0) -> LedgerBatch:
    return LedgerBatch(
        {record.key: record for record in records}, now=now, horizon=horizon, options=LedgerOptions(ttl_s=100.0)
    )


def done(unit: str) -> Change:
    return Change(key=KEY, epoch=1, unit=unit, event="done", outcome=Outcome(value=1))


def test_requests_for_one_key_take_effect_in_order() -> None:
    """C2: of two claims in one batch the first wins, and the second sees its record."""
    batch = batch_of()
    first, second = batch.claim(claim_of("u1"), "g", 1), batch.claim(claim_of("u2"), "g", 1)
    assert (first.granted, second.granted) == (True, False)
    assert second.record == first.record
    assert batch.written == {KEY: first.record}


def test_later_change_sees_the_earlier_one() -> None:
    """C4: the second answer to one key within a batch does not count, and the first one is written."""
    opened = batch_of().claim(claim_of("u1"), "g", 1).record
    batch = batch_of(opened)
    first, second = batch.change(done("u1")), batch.change(done("u1"))
    assert (first.accepted, second.accepted) == (True, False)
    assert batch.written == {KEY: first.record}


def test_freed_key_is_written_as_none_and_may_be_claimed_in_the_same_batch() -> None:
    """A key that a report frees is free for the next request of the batch."""
    opened = batch_of().claim(claim_of("u1"), "g", 1).record
    batch = batch_of(opened)
    assert batch.change(Change(key=KEY, epoch=1, unit="u1", event="not_sent")).accepted
    assert batch.written == {KEY: None}
    assert batch.claim(claim_of("u2"), "g", 1).granted


def test_nothing_is_written_for_refused_requests() -> None:
    """Only what changed is written: not what was refused, and not what is as it was."""
    opened = batch_of().claim(claim_of("u1"), "g", 1).record
    batch = batch_of(opened)
    assert not batch.claim(claim_of("u2"), "g", 1).granted
    assert batch.claim(claim_of("u1"), "g", 1).granted
    assert not batch.change(done("stranger")).accepted
    assert batch.written == {}


def test_expired_record_is_no_record() -> None:
    """C3: a settled record beyond its lifetime does not stand in the way of a claim, and no report changes it."""
    opened = batch_of().claim(claim_of("u1"), "g", 1).record
    settled = batch_of(opened).change(done("u1")).record
    assert settled is not None
    late = batch_of(settled, now=500.0, horizon=500.0)
    assert late.change(done("u1")).record is None
    assert late.written == {}
    assert late.claim(claim_of("u2"), "g", 1).record.first_seen_at == 500.0


def test_bad_request_leaves_the_earlier_ones_decided() -> None:
    """A request that raises decides nothing; the store then writes nothing of the batch."""
    batch = batch_of()
    batch.claim(claim_of("u1"), "g", 1)
    with pytest.raises(StoreBadInput):
        batch.change(Change(key=KEY, epoch=1, unit="u1", event="done"))
    assert list(batch.written) == [KEY]
