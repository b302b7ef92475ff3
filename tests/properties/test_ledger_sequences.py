"""Every sequence of requests to one key, up to six long, against what the ledger promises.

The sequences are walked as a tree, and branches that have met in the same situation are walked once. A situation is
the record, and what an observer outside the ledger knows: which units may have had an effect in this life of the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from agentgate.core import ledger
from agentgate.core.ledger import TABLE, LedgerOptions
from agentgate.model import Change, Changed, Claim, Claimed, KeyId, LedgerEvent, Outcome, Record, failure

KEY = KeyId("default", "stock", "order", "reserve", "A-1", "run")
OPTIONS = LedgerOptions(units_max=2)
STEPS_MAX = 6
OUTCOMES = {"done": Outcome(value=1), "failed": failure("rejected", sent=True)}
REPORTS: tuple[LedgerEvent, ...] = ("done", "failed", "not_sent", "lost", "not_done")
GATEWAYS = (("g", 1), ("g", 2))  # the same gateway before and after a restart


class Situation(NamedTuple):
    record: Record | None
    effects: frozenset[str]  # units that were granted and about which nobody has promised that they did nothing
    claims: int  # made so far; names the next unit
    again: bool  # whether somebody asked for a second effect on purpose


class Step(NamedTuple):
    request: Claim | Change
    gateway: tuple[str, int]
    answer: Claimed | Changed
    before: Situation
    after: Situation


def requests(situation: Situation, repeatable: bool) -> Iterator[tuple[Claim | Change, tuple[str, int]]]:
    """Everything that may be asked next: claims of a new unit, reports of any unit so far, a word of an operator."""
    unit = f"u{situation.claims}"
    for gateway in GATEWAYS:
        for again in (False, True):
            claim = Claim(
                key=KEY, fingerprint="f", agent="a", unit=unit, instance="i", repeatable=repeatable, again=again
            )
            yield claim, gateway
    epochs = {1, 1 if situation.record is None else situation.record.epoch}
    for unit in ("", *(f"u{number}" for number in range(situation.claims))):
        for event in REPORTS:
            for epoch in epochs:
                yield Change(key=KEY, epoch=epoch, unit=unit, event=event, outcome=OUTCOMES.get(event)), GATEWAYS[0]


def take(situation: Situation, request: Claim | Change, gateway: tuple[str, int]) -> Step:
    """Ask, and note what an observer then knows."""
    record, effects, claims, again = situation
    now = float(claims)
    if isinstance(request, Claim):
        claimed = ledger.claim(record, request, gateway=gateway[0], gateway_epoch=gateway[1], now=now, options=OPTIONS)
        if claimed.granted:
            again = again or (record is not None and record.state == "failed")
            after = Situation(claimed.record, effects | {request.unit}, claims + 1, again)
        else:
            after = Situation(claimed.record, effects, claims + 1, again)
        return Step(request, gateway, claimed, situation, after)
    changed = ledger.change(record, request, now=now, options=OPTIONS)
    if changed.accepted and request.event == "not_sent":
        effects -= {request.unit}
    if changed.accepted and request.event == "not_done":
        effects = frozenset()
    return Step(request, gateway, changed, situation, Situation(changed.record, effects, claims, again))


def situation_key(situation: Situation) -> tuple[object, ...]:
    """The same situation but for times."""
    record = situation.record
    timeless = None if record is None else replace(record, first_seen_at=0.0, expires_at=0.0)
    return (repr(timeless), *situation[1:])


def explore(repeatable: bool) -> list[Step]:
    """Every step of every sequence."""
    steps: list[Step] = []
    edge = [Situation(None, frozenset(), 0, again=False)]
    seen = {situation_key(edge[0])}
    for _ in range(STEPS_MAX):
        taken = [take(situation, *request) for situation in edge for request in requests(situation, repeatable)]
        steps += taken
        new = {situation_key(step.after): step.after for step in taken}
        edge = [situation for key, situation in new.items() if key not in seen]
        seen |= new.keys()
    return steps


@pytest.fixture(scope="module", params=[False, True], ids=["write", "repeatable"])
def steps(request: pytest.FixtureRequest) -> list[Step]:
    return explore(request.param)


def state_of(record: Record | None) -> str:
    return "none" if record is None else record.state


def counted(step: Step) -> bool:
    return step.answer.granted if isinstance(step.answer, Claimed) else step.answer.accepted


def test_every_row_of_the_table_is_reached_and_no_other() -> None:
    """The requests of six steps reach every transition of the table, and only those."""
    moves = {(pair[0], after) for pair, after in TABLE.items()}
    found = {
        (state_of(step.before.record), state_of(step.after.record))
        for repeatable in (False, True)
        for step in explore(repeatable)
        if counted(step)
    }
    assert found == moves


def test_what_does_not_count_changes_nothing(steps: list[Step]) -> None:
    """A refused request leaves the very record that stood there, and is answered with it."""
    for step in steps:
        if not counted(step):
            assert step.after.record is step.before.record
            assert step.answer.record is step.before.record


def test_a_write_runs_once(steps: list[Step]) -> None:
    """C2, C4: a second unit of a write starts only when nobody can have had an effect, or when `again` asked for it."""
    for step in steps:
        if isinstance(step.request, Claim) and not step.request.repeatable and counted(step):
            assert step.before.effects == frozenset() or step.after.again, step


def test_done_is_for_ever(steps: list[Step]) -> None:
    """C2: no request moves a done record, and its outcome is the one that was answered first."""
    for step in steps:
        if state_of(step.before.record) == "done":
            assert not counted(step)


def test_unknown_needs_somebody_who_knows(steps: list[Step]) -> None:
    """C4: only the lost unit itself, a check or an operator end an unknown state; never a claim, never a loss."""
    for step in steps:
        if state_of(step.before.record) == "unknown" and counted(step):
            assert isinstance(step.request, Change)
            assert step.request.event != "lost"


def test_open_records_name_who_may_settle_them(steps: list[Step]) -> None:
    """An open record has a unit, a settled one has an outcome of its own kind and no unit; a write has one unit."""
    for record in (step.after.record for step in steps):
        if record is None:
            continue
        assert (record.outcome is None) == bool(record.units)
        if record.state in ("done", "failed"):
            assert record.outcome is not None
            assert record.outcome.ok == (record.state == "done")
        assert len(record.units) <= (OPTIONS.units_max if record.repeatable else 1)
        assert record.state != "unknown" or not record.repeatable


def test_epochs_grow_by_again_alone(steps: list[Step]) -> None:
    """A record's epoch and the time it was first seen stay, but for `again`, which takes the next epoch."""
    for step in steps:
        before, after = step.before.record, step.after.record
        if before is None or after is None:
            continue
        again = before.state == "failed" and counted(step)
        assert after.epoch == before.epoch + (1 if again else 0)
        assert after.first_seen_at == before.first_seen_at


def test_a_running_record_stays_with_its_gateway(steps: list[Step]) -> None:
    """Nobody takes over a running record by a claim, not even its own gateway after a restart."""
    for step in steps:
        before, after = step.before.record, step.after.record
        if state_of(before) == "running" and isinstance(step.request, Claim) and counted(step):
            assert before is not None
            assert after is not None
            assert (before.gateway, before.gateway_epoch) == (after.gateway, after.gateway_epoch) == step.gateway


def test_the_same_request_twice_counts_once_or_is_the_same(steps: list[Step]) -> None:
    """A re-run batch is harmless: a request that counted leaves, when it is repeated, the record as it is."""
    for step in steps:
        if counted(step):
            repeated = take(step.after, step.request, step.gateway)
            assert repeated.after.record == step.after.record or repeated.after.record is step.after.record
