"""The few things that the structs of the vocabulary decide themselves."""

from __future__ import annotations

import msgspec
import pytest

from agentgate.model import (
    Call,
    Card,
    KeyId,
    LastAttempt,
    Outcome,
    Skill,
    Span,
    check_type,
    degraded_type,
    failure,
    in_order,
    served_type,
    unfolded,
)


def test_a_card_knows_its_skills() -> None:
    """A1: who can do what is asked of the card."""
    card = Card(agent="a", skills=(Skill(task_type="x"), Skill(task_type="y", effect="read")))
    assert card.skill("y") is card.skills[1]
    assert card.skill("z") is None
    assert check_type("x") == "check:x"


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome(value=1), "done"),
        (failure("handler_error", sent=True), "failed"),
        (failure("deadline_exceeded"), "failed"),
        (failure("breaker_open"), "refused"),
        (failure("bad_request"), "refused"),
        (failure("needs_human", sent=True), "failed"),
        (failure("outcome_unknown", sent=True), "unknown"),
    ],
)
def test_an_outcome_says_what_it_is(outcome: Outcome, status: str) -> None:
    """Idea 5: done, failed, refused, unknown; nothing else, and nothing pretends."""
    assert outcome.status == status
    assert outcome.ok == (status == "done")
    assert bool(outcome.code) == (not outcome.ok)


def test_what_stands_beside_a_skill_has_its_name() -> None:
    """C4, F6: a check and a degraded handler are called by names that lead back to their skill."""
    assert (check_type("confirm"), degraded_type("confirm")) == ("check:confirm", "degraded:confirm")
    names = ("check:confirm", "degraded:a:b", "confirm", "other:confirm")
    assert [served_type(name) for name in names] == ["confirm", "a:b", "confirm", "other:confirm"]


def test_a_time_to_wait_travels_in_whole_milliseconds() -> None:
    """B4: seconds inside, milliseconds on the wire, never below zero."""
    waits = [failure("overloaded", retry_after_s=wait_s).error for wait_s in (None, -1.0, 0.0, 1.2345)]
    assert [wait.retry_after_ms for wait in waits if wait is not None] == [None, 0, 0, 1234]


def test_the_parts_of_a_call_make_its_key() -> None:
    """C1: the key is built of parts; a read has none in the ledger."""
    call = Call(id="c", target="t", task_type="x", business_key="o1", caller="me")
    assert call.key_id == KeyId("default", "t", "me", "x", "o1", "run")
    assert call.keyed
    assert not Call(id="c", target="t", task_type="x", effect="read").keyed


def test_the_last_attempt_of_a_call_travels_in_its_span() -> None:
    """H1: one span for the call and one for each attempt are shown, although the last two are written as one."""
    last = LastAttempt(
        span_id="a",
        instance="stock.1",
        unit="u1",
        attempt=2,
        started_at=1.5,
        wait_ms=2.0,
        gap_ms=500.0,
        queue_ms=0.5,
        timeout_ms=2000.0,
        notes=("half",),
    )
    written = Span(
        kind="call", trace_id="t", span_id="c", call_id="c1", caller="shop", target="stock", task_type="look",
        started_at=1.0, attempts=2, handler_ms=1.5, sent=True, notes=("would_cut",), request="{}", last=last,
    )  # fmt: skip
    call, attempt = unfolded(written)
    assert call == msgspec.structs.replace(written, last=None)
    assert (attempt.kind, attempt.parent_id, attempt.span_id, attempt.trace_id) == ("attempt", "c", "a", "t")
    assert (attempt.unit, attempt.attempt, attempt.gap_ms, attempt.handler_ms) == ("u1", 2, 500.0, 1.5)
    assert (attempt.notes, attempt.sent, attempt.request) == (("half",), True, "")
    assert unfolded(call) == (call,)
    assert sorted([attempt, call], key=in_order) == [call, attempt]
