"""How long records count as there, also when the clock jumps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentgate.core import expiry
from agentgate.core.expiry import Expiry
from agentgate.model import KeyId, Record, RecordState

TTL_S = 100.0
RECORD = Record(
    key=KeyId("default", "stock", "order", "reserve", "A-1", "run"),
    state="done",
    epoch=1,
    fingerprint="f",
    agent="stock",
    expires_at=150.0,
)


def test_first_start_takes_the_clock_as_it_is() -> None:
    """A store that has seen no time believes the clock."""
    assert expiry.start(None, 42.0, TTL_S) == Expiry(latest=42.0)


def test_time_never_goes_back() -> None:
    """A start with a clock that was set back gets the latest time the store has seen."""
    assert expiry.start(Expiry(latest=1000.0), 400.0, TTL_S).latest == 1000.0
    assert expiry.note(Expiry(latest=1000.0), 400.0).latest == 1000.0
    assert expiry.note(Expiry(latest=1000.0), 1001.0).latest == 1001.0


def test_short_stop_spares_nothing() -> None:
    """A start within one record lifetime is an ordinary one: expiry is judged by the clock."""
    started = expiry.start(Expiry(latest=1000.0), 1100.0, TTL_S)
    assert started == Expiry(latest=1100.0)
    assert expiry.horizon(started, 1101.0) == 1101.0


def test_jump_spares_what_was_live_before_it() -> None:
    """R: after a jump of more than one lifetime, records live on by the time before it, for one lifetime more."""
    started = expiry.start(Expiry(latest=1000.0), 5000.0, TTL_S)
    assert expiry.horizon(started, 5000.0) == 1000.0
    assert expiry.horizon(started, 5099.0) == 1000.0
    assert expiry.horizon(started, 5100.0) == 5100.0
    live = replace(RECORD, expires_at=1001.0)
    assert expiry.live(live, expiry.horizon(started, 5001.0)) is live
    assert expiry.live(live, expiry.horizon(started, 5100.0)) is None


def test_second_jump_does_not_cut_the_spared_time_short() -> None:
    """Records spared by one jump are still spared when another one follows before their time was lived through."""
    first = expiry.start(Expiry(latest=1000.0), 5000.0, TTL_S)
    second = expiry.start(first, 9000.0, TTL_S)
    assert second == Expiry(latest=9000.0, spared_from=1000.0, spared_until=9100.0)
    lived_through = expiry.note(second, 9100.0)
    assert expiry.start(lived_through, 20_000.0, TTL_S).spared_from == 9100.0


def test_restart_within_the_spared_time_keeps_it() -> None:
    """An ordinary restart does not end the mercy of the one before."""
    first = expiry.start(Expiry(latest=1000.0), 5000.0, TTL_S)
    assert expiry.horizon(expiry.start(first, 5050.0, TTL_S), 5050.0) == 1000.0


@pytest.mark.parametrize(
    ("state", "live", "due"),
    [
        ("running", True, True),
        ("done", False, True),
        ("failed", False, True),
        ("unknown", True, False),
    ],
)
def test_what_expires(state: RecordState, live: bool, due: bool) -> None:
    """C3: settled records expire, running ones are extended, unknown ones never expire unreported."""
    record = replace(RECORD, state=state)
    for horizon in (150.0, 151.0):
        assert (expiry.live(record, horizon) is record) == live
        assert expiry.is_due(record, horizon) == due
    assert expiry.live(record, 149.9) is record
    assert not expiry.is_due(record, 149.9)


def test_no_record_is_no_record() -> None:
    """What is not there cannot be live."""
    assert expiry.live(None, 0.0) is None


def test_extended_record_gets_another_lifetime() -> None:
    """C3: a scan adds a lifetime while the work is active."""
    assert expiry.extended(RECORD, 160.0, TTL_S).expires_at == 260.0


def test_sweep_takes_the_oldest_first() -> None:
    """When a sweep may not delete all, those that expired first go first."""
    younger = replace(RECORD, expires_at=200.0)
    assert sorted([younger, RECORD], key=expiry.sweep_order) == [RECORD, younger]
