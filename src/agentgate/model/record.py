"""The ledger's memory of one idempotency key, and what may be asked of it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from agentgate.model.call import KeyId
from agentgate.model.outcome import Outcome

RecordState = Literal["running", "done", "failed", "unknown"]  # "none" is the absence of a record


class UnitRef(Struct, frozen=True):
    """A unit that runs (or ran) for a key, and the process that runs it."""

    unit: str
    instance: str


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One key in the ledger. Wall times in seconds since the epoch.

    `epoch` grows with every run that `again` starts and fences late answers of an earlier one. `units` are those
    still open. `payload` is kept only when the skill has a check that will need it.
    """

    key: KeyId
    state: RecordState
    epoch: int
    fingerprint: str
    agent: str
    repeatable: bool = False
    units: tuple[UnitRef, ...] = ()
    gateway: str = ""
    gateway_epoch: int = 0
    outcome: Outcome | None = None
    payload: Any = None
    trace_id: str = ""
    parent_unit: str = ""
    first_seen_at: float = 0.0
    expires_at: float = 0.0


class Claim(Struct, frozen=True, kw_only=True):
    """Asks for the right to run a key: opens the record, or adds a unit to a repeatable one this gateway runs."""

    key: KeyId
    fingerprint: str
    agent: str
    unit: str
    instance: str
    repeatable: bool = False
    again: bool = False
    payload: Any = None
    trace_id: str = ""
    parent_unit: str = ""


class Claimed(Struct, frozen=True, kw_only=True):
    """The answer to a claim: granted, or the record that stands in the way."""

    granted: bool
    record: Record


# What happens to a record after its claim; the transition table is `core.ledger`.
LedgerEvent = Literal[
    "done",  # an answer with a value
    "failed",  # an answer that is a final error
    "not_sent",  # the request never reached the target, or the target promised that nothing happened
    "lost",  # the instance (or gateway) is gone and nobody can tell
    "not_done",  # the check or an operator says: it did not happen
]


class Change(Struct, frozen=True, kw_only=True):
    """Reports what became of a unit's run of a key; counts only for an open record of the same epoch."""

    key: KeyId
    epoch: int
    unit: str
    event: LedgerEvent
    outcome: Outcome | None = None


class Changed(Struct, frozen=True, kw_only=True):
    """The answer to a change: whether it counted, and the record after it (None: the key is free)."""

    accepted: bool
    record: Record | None
