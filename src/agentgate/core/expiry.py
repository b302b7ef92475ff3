"""How long a record counts as there, also when the wall clock lies (DESIGN 6, "Time").

Decides which `now` a starting gateway works with, which records are live, and what a sweep does with a record.
The rules:

- Time never goes back: a start gets at least the latest time the store has seen.
- Running and unknown records never expire. Nobody would know any more that the effect may have happened.
- A done or failed record lives until its `expires_at`.
- A start that finds the clock more than one record lifetime ahead cannot tell a long stop from a wrong clock. It
  spares what was live before the jump for one more lifetime: until then, expiry is judged by the time before it.

How it works: an `Expiry` is kept with the records. `horizon` is the time by which expiry is judged: usually `now`,
and the time before the jump while records are spared. The latest time is noted at a start and at a sweep, not with
every write: what it lags behind is the interval of the sweep, which no rule here notices.

Not covered: how the gateway's clock runs between start and stop (`adapters.clock` follows no jump).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from agentgate.core.ledger import OPEN
from agentgate.model import KeyId, Record


class Expiry(Struct, frozen=True, kw_only=True):
    """What a store remembers about time, in wall seconds."""

    latest: float
    spared_from: float = 0.0
    spared_until: float = 0.0


def start(stored: Expiry | None, now: float, ttl_s: float) -> Expiry:
    """The expiry a start works with; its `latest` is the gateway's `now`."""
    if stored is None:
        return Expiry(latest=now)
    if now - stored.latest <= ttl_s:
        return note(stored, now)
    # A second jump before the spared time was lived through must not cut it short.
    spared_from = stored.spared_from if stored.latest < stored.spared_until else stored.latest
    return Expiry(latest=now, spared_from=spared_from, spared_until=now + ttl_s)


def note(expiry: Expiry, now: float) -> Expiry:
    """Remember that this time was seen."""
    return replace(expiry, latest=max(expiry.latest, now))


def horizon(expiry: Expiry, now: float) -> float:
    """The time by which expiry is judged."""
    return min(now, expiry.spared_from) if now < expiry.spared_until else now


def live(record: Record | None, horizon: float) -> Record | None:
    """The record, unless it has expired."""
    if record is None or record.state in OPEN or record.expires_at > horizon:
        return record
    return None


def is_due(record: Record, horizon: float) -> bool:
    """Whether a sweep has to look at this record: settled ones go, running ones are extended, unknown ones stay."""
    return record.state != "unknown" and record.expires_at <= horizon


def extended(record: Record, now: float, ttl_s: float) -> Record:
    """A running record that a sweep found due: the work is active, so it gets another lifetime."""
    return replace(record, expires_at=now + ttl_s)


def sweep_order(record: Record) -> tuple[float, KeyId]:
    """Which records go first when a sweep may not delete all: those that expired first."""
    return record.expires_at, record.key
