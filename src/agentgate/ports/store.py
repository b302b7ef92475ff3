"""What the gate keeps: the ledger, the route snapshot, the gateway's own epoch (DESIGN 6).

Methods are set-based: the runtime's Batcher merges concurrent single requests. Answers come in the order of the
requests. Within one call, requests for the same key take effect in the order given. `now` is wall seconds and serves
the expiry of records only; an adapter reads no clock. Raised: `StoreBroke`, `StoreConflict`, `StoreBadInput`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from agentgate.model import (
    DEFAULT_TENANT,
    Change,
    Changed,
    Claim,
    Claimed,
    KeyId,
    Record,
    RecordState,
    RouteSnapshot,
    Span,
)


class Lifetime(Struct, frozen=True, kw_only=True):
    """What `begin` grants a starting gateway."""

    epoch: int  # grows with every start; on this store every older epoch is dead
    now: float  # wall seconds, never below the last stored value
    secret: str  # signs unit tokens, and survives restarts


class Store(Protocol):
    """The durable truth. What a method answered is on disk."""

    async def open(self) -> None:
        """Take the store (one gateway process per file) and bring its schema up to date."""
        ...

    async def close(self) -> None:
        """Let go of it; safe to call twice."""
        ...

    async def begin(self, gateway: str, new_secret: str, now: float) -> Lifetime:
        """Open a new epoch for this gateway; `new_secret` is kept if there is none yet."""
        ...

    async def lookup(self, keys: Sequence[KeyId], now: float) -> list[Record | None]:
        """The live records of these keys (an expired one is no record)."""
        ...

    async def claim(self, claims: Sequence[Claim], gateway: str, epoch: int, now: float) -> list[Claimed]:
        """Open records for the gateway that runs under `epoch`; exactly one of several claimants wins."""
        ...

    async def change(self, changes: Sequence[Change], now: float) -> list[Changed]:
        """Apply what became of units, by the ledger's table."""
        ...

    async def find_units(self, units: Sequence[str]) -> list[Record | None]:
        """The open records (running or unknown) that name these units."""
        ...

    async def open_records(self, after: KeyId | None, limit: int) -> list[Record]:
        """Running records in key order, for a starting gateway."""
        ...

    async def list_records(
        self, after: KeyId, before: KeyId, state: RecordState | None, now: float, limit: int
    ) -> list[Record]:
        """Live records between two keys, both excluded, in key order; without payloads and values, which are large."""
        ...

    async def sweep(self, now: float, limit: int) -> int:
        """Delete up to `limit` expired records; running ones are extended, unknown ones stay. Returns how many went."""
        ...

    async def save_routes(self, snapshot: RouteSnapshot) -> None:
        """Keep the newest route snapshot; an older version than the stored one is ignored."""
        ...

    async def load_routes(self) -> RouteSnapshot:
        """The stored snapshot, or an empty one of version 0."""
        ...


class SpanStore(Protocol):
    """Where spans go. Not crash-durable: the last 20 ms may be missing after a crash."""

    async def open(self) -> None:
        """Make the place ready."""
        ...

    async def close(self) -> None:
        """Flush and let go; safe to call twice."""
        ...

    async def write(self, spans: Sequence[Span]) -> None:
        """Append finished spans."""
        ...

    async def chain(self, trace_or_key: str, limit: int, tenant: str = DEFAULT_TENANT) -> list[Span]:
        """The tenant's spans of one trace, or of the traces in which a key or business key occurs, in order of start.

        Traces are named by callers, so two tenants may use the same name; neither sees anything of the other.
        """
        ...

    async def sweep(self, now: float) -> int:
        """Delete days beyond the retention time; returns how many files went."""
        ...
