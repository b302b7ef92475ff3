"""The ledger: what one idempotency key has come to, and who may run it now (DESIGN 4.2).

Decides, for one key, whether a claim may run it and whether a report about a run counts. The rules:

- A free key is opened by a claim; exactly one claimant can find it free, because the store serialises them.
- A running key is nobody else's: also not when its gateway restarted under a newer epoch (that gateway asks the
  instances first and then reports what it found). Only the very gateway and epoch that opened it may add a unit, and
  only when the work is declared repeatable and the body is the same.
- The first answer of any open unit settles the key. Later answers, answers of an earlier epoch and answers of units
  that are not open do not count.
- A unit that never started leaves without a trace. A lost unit leaves a repeatable key as if it had never started;
  for any other key nobody can tell, and the key is unknown until a late answer of that unit, a check or an operator
  says what happened. An unknown record therefore keeps its unit.
- `again` re-runs what failed, under the next epoch; never what is done or unknown.
- A repeated claim of a unit that is already open is granted again: a batch whose commit could not be confirmed is
  re-run, and must find its own work. A gateway that never heard the answer to its claim names the unit alone.

How it works: `TABLE` is the whole machine. `claim` and `change` say which event a request amounts to, and a pair that
is not in the table does not count; it changes nothing and is answered with the record that stands. The new record is
in the answer; a store keeps it when, and only when, the answer says granted or accepted.

Not covered: whether the body is the same (the gateway compares fingerprints, it has the words for the caller), and
how long a record counts as there (`core.expiry`; what is handed in is the record that is live, or None).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from msgspec.structs import replace

from agentgate.errors import StoreBadInput
from agentgate.model import Change, Changed, Claim, Claimed, Record, RecordState, UnitRef

State = Literal["none", "running", "done", "failed", "unknown"]
Event = Literal[
    "claim",  # opens a free key
    "again",  # opens a failed one
    "next_attempt",  # adds a unit to a repeatable one
    "unit_ended",  # one of several units ended without an answer
    "done",
    "failed",
    "not_sent",  # the last unit never started
    "lost",  # the last unit is lost and nobody can tell
    "lost_repeatable",  # the last unit is lost, which does no harm
    "not_done",  # a check or an operator says: it did not happen
]

TABLE: Final[dict[tuple[State, Event], State]] = {
    ("none", "claim"): "running",
    ("failed", "again"): "running",
    ("running", "next_attempt"): "running",
    ("running", "unit_ended"): "running",
    ("running", "done"): "done",
    ("running", "failed"): "failed",
    ("running", "not_sent"): "none",
    ("running", "lost"): "unknown",
    ("running", "lost_repeatable"): "none",
    ("unknown", "done"): "done",
    ("unknown", "failed"): "failed",
    ("unknown", "not_sent"): "none",
    ("unknown", "not_done"): "none",
}

OPEN: Final[frozenset[State]] = frozenset({"running", "unknown"})

# "Whatever epoch": of a gateway whose claim may have been granted. The unit's unique name says which run is meant.
EPOCH_BY_UNIT: Final = 0

TTL_S: Final = 86_400.0  # 24 h: longer than any chain of calls may take (REQUIREMENTS C3)
UNITS_MAX: Final = 32  # a retry loop opens 3 at most; the rest is room for units that do not stop when told


@dataclass(frozen=True, kw_only=True)
class LedgerOptions:
    """How long a record is kept after its last event, and how many units of one key may be open at once."""

    ttl_s: float = TTL_S
    units_max: int = UNITS_MAX

    def __post_init__(self) -> None:
        if not self.ttl_s > 0:
            raise ValueError(f"ttl_s must be above 0, not {self.ttl_s}")
        if self.units_max < 1:
            raise ValueError(f"units_max must be at least 1, not {self.units_max}")


def claim(
    record: Record | None, claim: Claim, *, gateway: str, gateway_epoch: int, now: float, options: LedgerOptions
) -> Claimed:
    """Decide about a claim on the live record of its key; raises `StoreBadInput` for a key no store can hold."""
    if "\0" in "".join(claim.key):
        raise StoreBadInput("a part of the key contains a NUL character")
    ref = UnitRef(unit=claim.unit, instance=claim.instance)
    if record is None or (record.state == "failed" and claim.again):
        opened = Record(
            key=claim.key,
            state=_after(record, "claim" if record is None else "again"),
            epoch=1 if record is None else record.epoch + 1,
            fingerprint=claim.fingerprint,
            agent=claim.agent,
            repeatable=claim.repeatable,
            units=(ref,),
            gateway=gateway,
            gateway_epoch=gateway_epoch,
            payload=claim.payload,
            trace_id=claim.trace_id,
            parent_unit=claim.parent_unit,
            first_seen_at=now if record is None else record.first_seen_at,
            expires_at=now + options.ttl_s,
        )
        return Claimed(granted=True, record=opened)
    if record.state != "running" or (record.gateway, record.gateway_epoch) != (gateway, gateway_epoch):
        return Claimed(granted=False, record=record)
    if _names(record, claim.unit):
        return Claimed(granted=True, record=record)
    if not record.repeatable or record.fingerprint != claim.fingerprint or len(record.units) >= options.units_max:
        return Claimed(granted=False, record=record)
    state = _after(record, "next_attempt")
    added = replace(record, state=state, units=(*record.units, ref), expires_at=now + options.ttl_s)
    return Claimed(granted=True, record=added)


def change(record: Record | None, change: Change, *, now: float, options: LedgerOptions) -> Changed:
    """Decide what a report does to the live record of its key; raises `StoreBadInput` for one that says nothing."""
    _check_outcome(change)
    event = None if record is None else _event_of(record, change)
    if record is None or event is None or (record.state, event) not in TABLE:
        return Changed(accepted=False, record=record)
    state = TABLE[record.state, event]
    if state == "none":
        return Changed(accepted=True, record=None)
    return Changed(accepted=True, record=_moved(record, state, change, now + options.ttl_s))


def _event_of(record: Record, change: Change) -> Event | None:
    """What a report amounts to here; None when it is not about an open unit of this run."""
    by_unit = _names(record, change.unit) and change.epoch in (record.epoch, EPOCH_BY_UNIT)
    by_operator = change.unit == "" and record.state == "unknown" and change.epoch == record.epoch
    if not by_unit and not (by_operator and change.event != "not_sent"):  # that is the unit's own word
        return None
    if change.event in ("not_sent", "lost") and len(record.units) > 1:
        return "unit_ended"
    if change.event == "lost" and record.repeatable:
        return "lost_repeatable"
    return change.event


def _moved(record: Record, state: RecordState, change: Change, expires_at: float) -> Record:
    """The record in its new state: a settled one keeps its outcome and nothing it needed only to get there."""
    if state in ("done", "failed"):
        return replace(record, state=state, units=(), payload=None, outcome=change.outcome, expires_at=expires_at)
    units = record.units if state == "unknown" else tuple(ref for ref in record.units if ref.unit != change.unit)
    return replace(record, state=state, units=units, expires_at=expires_at)


def _check_outcome(change: Change) -> None:
    """An answer carries its outcome, of its own kind; anything else would be stored and replayed for a day."""
    if change.event == "done" and (change.outcome is None or not change.outcome.ok):
        raise StoreBadInput("`done` needs an outcome with a value")
    if change.event == "failed" and (change.outcome is None or change.outcome.ok):
        raise StoreBadInput("`failed` needs an outcome with an error")


def _after(record: Record | None, event: Event) -> RecordState:
    """The state that a claim leads to."""
    state = TABLE[record.state if record is not None else "none", event]
    assert state != "none"
    return state


def _names(record: Record, unit: str) -> bool:
    """Whether the unit is one of the record's open ones."""
    return any(ref.unit == unit for ref in record.units)
