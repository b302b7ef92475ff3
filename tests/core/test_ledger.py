"""The ledger's table, pair by pair, and the rules that are not in the table."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from agentgate.core import ledger
from agentgate.core.ledger import TABLE, LedgerOptions, State
from agentgate.errors import StoreBadInput
from agentgate.model import Change, Changed, Claim, Claimed, KeyId, LedgerEvent, Outcome, Record, UnitRef, failure

KEY = KeyId("default", "stock", "order", "reserve", "A-1", "run")
OPTIONS = LedgerOptions(ttl_s=100.0, units_max=3)
REF = UnitRef(unit="u1", instance="i1")
DONE = Outcome(value={"reserved": True})
FAILED = failure("rejected", sent=True)
OUTCOMES = {"done": DONE, "failed": FAILED}

RUNNING = Record(
    key=KEY,
    state="running",
    epoch=1,
    fingerprint="f",
    agent="stock",
    units=(REF,),
    gateway="g",
    gateway_epoch=7,
    payload={"sku": 1},
    trace_id="t",
    parent_unit="p",
    first_seen_at=10.0,
    expires_at=110.0,
)
RECORDS: dict[str, Record | None] = {
    "none": None,
    "running": RUNNING,
    "done": replace(RUNNING, state="done", units=(), payload=None, outcome=DONE),
    "failed": replace(RUNNING, state="failed", units=(), payload=None, outcome=FAILED),
    "unknown": replace(RUNNING, state="unknown"),
}


def claim_of(unit: str = "u2", **fields: object) -> Claim:
    base = Claim(
        key=KEY, fingerprint="f", agent="stock", unit=unit, instance="i2", payload=2, trace_id="t2", parent_unit="p2"
    )
    return replace(base, **fields)


def claimed(record: Record | None, claim: Claim, *, gateway: str = "g", gateway_epoch: int = 7) -> Claimed:
    return ledger.claim(record, claim, gateway=gateway, gateway_epoch=gateway_epoch, now=50.0, options=OPTIONS)


def changed(record: Record | None, event: LedgerEvent, unit: str = "u1", epoch: int = 1) -> Changed:
    change = Change(key=KEY, epoch=epoch, unit=unit, event=event, outcome=OUTCOMES.get(event))
    return ledger.change(record, change, now=60.0, options=OPTIONS)


# Every state with every report of its only unit: the state after it, or None where the report does not count.
REPORTS: dict[tuple[State, LedgerEvent], State | None] = {
    ("none", "done"): None,
    ("none", "failed"): None,
    ("none", "not_sent"): None,
    ("none", "lost"): None,
    ("none", "not_done"): None,
    ("running", "done"): "done",
    ("running", "failed"): "failed",
    ("running", "not_sent"): "none",
    ("running", "lost"): "unknown",
    ("running", "not_done"): None,
    ("done", "done"): None,
    ("done", "failed"): None,
    ("done", "not_sent"): None,
    ("done", "lost"): None,
    ("done", "not_done"): None,
    ("failed", "done"): None,
    ("failed", "failed"): None,
    ("failed", "not_sent"): None,
    ("failed", "lost"): None,
    ("failed", "not_done"): None,
    ("unknown", "done"): "done",
    ("unknown", "failed"): "failed",
    ("unknown", "not_sent"): "none",
    ("unknown", "lost"): None,
    ("unknown", "not_done"): "none",
}


def state_of(record: Record | None) -> str:
    return "none" if record is None else record.state


def test_reports_cover_every_pair() -> None:
    """The enumeration below leaves no pair of state and report out."""
    assert set(REPORTS) == {(state, event) for state in get_args(State) for event in get_args(LedgerEvent)}


@pytest.mark.parametrize(("state", "event"), REPORTS)
def test_report_of_the_only_unit(state: State, event: LedgerEvent) -> None:
    """C4: a report moves the record as the table says, or changes nothing and is answered with what stands."""
    expected = REPORTS[state, event]
    answer = changed(RECORDS[state], event)
    assert answer.accepted == (expected is not None)
    assert state_of(answer.record) == (state if expected is None else expected)
    if expected is None:
        assert answer.record is RECORDS[state]


@pytest.mark.parametrize("state", get_args(State))
@pytest.mark.parametrize("again", [False, True])
def test_claim_in_every_state(state: State, again: bool) -> None:
    """C2: only a free key is granted, or a failed one when that is asked for; `again` never re-runs done or unknown."""
    answer = claimed(RECORDS[state], claim_of(again=again), gateway="other")
    assert answer.granted == (state == "none" or (state == "failed" and again))
    assert state_of(answer.record) == ("running" if answer.granted else state)
    if not answer.granted:
        assert answer.record is RECORDS[state]


def test_table_has_no_way_out_of_done() -> None:
    """C2: what is done stays done; the table has no transition that leaves it."""
    assert [pair for pair in TABLE if pair[0] == "done"] == []
    assert {state for state, _ in TABLE} | set(TABLE.values()) == set(get_args(State))


def test_opened_record_says_who_runs_what() -> None:
    """A granted claim on a free key leaves a record with everything that a restarted gateway has to know."""
    record = claimed(None, claim_of(repeatable=True)).record
    assert record == Record(
        key=KEY,
        state="running",
        epoch=1,
        fingerprint="f",
        agent="stock",
        repeatable=True,
        units=(UnitRef(unit="u2", instance="i2"),),
        gateway="g",
        gateway_epoch=7,
        payload=2,
        trace_id="t2",
        parent_unit="p2",
        first_seen_at=50.0,
        expires_at=150.0,
    )


def test_again_opens_the_next_epoch() -> None:
    """`again` over a failure fences the answers of the first run and keeps the time the key was first seen."""
    record = claimed(RECORDS["failed"], claim_of(again=True, fingerprint="f2")).record
    assert (record.epoch, record.first_seen_at, record.outcome, record.fingerprint) == (2, 10.0, None, "f2")
    assert not changed(record, "done", unit="u1", epoch=1).accepted
    assert not changed(record, "done", unit="u2", epoch=1).accepted
    assert changed(record, "done", unit="u2", epoch=2).accepted


def test_settled_record_keeps_its_outcome_and_lets_go_of_the_rest() -> None:
    """C3: a settled record holds the outcome for its lifetime, counted from the answer, and no payload or unit."""
    record = changed(RUNNING, "done").record
    assert record == replace(RUNNING, state="done", units=(), payload=None, outcome=DONE, expires_at=160.0)


def test_lost_unit_of_a_write_stays_named() -> None:
    """C4: an unknown record keeps the unit, so that its late answer is found and settles it; also its payload."""
    record = changed(RUNNING, "lost").record
    assert record is not None
    assert (record.units, record.payload) == ((REF,), {"sku": 1})
    assert state_of(changed(record, "done").record) == "done"


def test_first_answer_of_any_unit_settles() -> None:
    """C4: of a repeatable key's units the first answer counts, the later ones do not."""
    record = claimed(replace(RUNNING, repeatable=True), claim_of()).record
    assert [ref.unit for ref in record.units] == ["u1", "u2"]
    settled = changed(record, "done", unit="u2")
    assert settled.accepted
    assert not changed(settled.record, "failed", unit="u1").accepted


@pytest.mark.parametrize("event", ["not_sent", "lost"])
@pytest.mark.parametrize("last", ["not_sent", "lost"])
def test_repeatable_key_is_free_when_its_last_unit_went(event: LedgerEvent, last: LedgerEvent) -> None:
    """C4: each unit that went without an answer leaves the record; without any unit a repeatable key is free."""
    record = claimed(replace(RUNNING, repeatable=True), claim_of()).record
    left = changed(record, event, unit="u1").record
    assert left is not None
    assert (left.state, [ref.unit for ref in left.units]) == ("running", ["u2"])
    assert changed(left, last, unit="u2") == Changed(accepted=True, record=None)


@pytest.mark.parametrize(
    ("record", "claim", "gateway", "gateway_epoch"),
    [
        (RUNNING, claim_of(), "g", 7),
        (replace(RUNNING, repeatable=True), claim_of(fingerprint="other"), "g", 7),
        (replace(RUNNING, repeatable=True), claim_of(), "other", 7),
        (replace(RUNNING, repeatable=True), claim_of(), "g", 8),
        (replace(RUNNING, repeatable=True), claim_of("u1"), "g", 8),
        (replace(RUNNING, repeatable=True, units=(REF, REF, REF)), claim_of(), "g", 7),
    ],
    ids=["write", "other body", "other gateway", "older epoch", "older epoch, same unit", "too many units"],
)
def test_running_key_is_refused(record: Record, claim: Claim, gateway: str, gateway_epoch: int) -> None:
    """C2: a running key is nobody else's; its own gateway adds units only to a repeatable one with the same body."""
    answer = claimed(record, claim, gateway=gateway, gateway_epoch=gateway_epoch)
    assert answer == Claimed(granted=False, record=record)


def test_repeated_claim_finds_its_own_unit() -> None:
    """A batch whose commit could not be confirmed is re-run: the claim is granted again, and nothing is added."""
    assert claimed(RUNNING, claim_of("u1")) == Claimed(granted=True, record=RUNNING)


@pytest.mark.parametrize("state", ["running", "done", "failed", "unknown"])
@pytest.mark.parametrize("event", get_args(LedgerEvent))
@pytest.mark.parametrize(("unit", "epoch"), [("stranger", 1), ("stranger", 0), ("", 0), ("u1", 2)])
def test_strangers_and_other_epochs_do_not_count(state: str, event: LedgerEvent, unit: str, epoch: int) -> None:
    """C4: a report counts only for an open unit of the record's own epoch."""
    assert changed(RECORDS[state], event, unit=unit, epoch=epoch) == Changed(accepted=False, record=RECORDS[state])


def test_unit_alone_says_which_run_is_meant() -> None:
    """A gateway that never heard the answer to its claim reports without an epoch, and reaches its own unit only."""
    assert changed(RUNNING, "not_sent", epoch=0) == Changed(accepted=True, record=None)


@pytest.mark.parametrize(("event", "state"), [("done", "done"), ("failed", "failed"), ("not_done", "none")])
def test_operator_settles_only_the_unknown(event: LedgerEvent, state: str) -> None:
    """An operator or a check, who name no unit, decide about an unknown record and about no other."""
    assert state_of(changed(RECORDS["unknown"], event, unit="").record) == state
    for other in ("running", "done", "failed"):
        assert not changed(RECORDS[other], event, unit="").accepted


@pytest.mark.parametrize(("event", "outcome"), [("done", None), ("done", FAILED), ("failed", None), ("failed", DONE)])
def test_answer_without_its_outcome_is_refused(event: LedgerEvent, outcome: Outcome | None) -> None:
    """What would be replayed for a day is checked before it is stored."""
    change = Change(key=KEY, epoch=1, unit="u1", event=event, outcome=outcome)
    with pytest.raises(StoreBadInput, match=event):
        ledger.change(RUNNING, change, now=60.0, options=OPTIONS)


def test_key_with_nul_is_refused() -> None:
    """A NUL would end the text in some stores, and two keys would become one."""
    with pytest.raises(StoreBadInput, match="NUL"):
        claimed(None, claim_of(key=KEY._replace(business_key="A\0B")))


@pytest.mark.parametrize("fields", [{"ttl_s": 0.0}, {"ttl_s": float("nan")}, {"units_max": 0}])
def test_options_are_checked(fields: dict[str, float]) -> None:
    """Options that could not work are refused where they are made."""
    with pytest.raises(ValueError, match=next(iter(fields))):
        LedgerOptions(**fields)  # type: ignore[arg-type] # units_max is whole where it matters
