"""The few things that the structs of the vocabulary decide themselves."""

from __future__ import annotations

import pytest

from agentgate.model import Call, Card, KeyId, Outcome, Skill, check_type, failure


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
        (failure("outcome_unknown", sent=True), "unknown"),
    ],
)
def test_an_outcome_says_what_it_is(outcome: Outcome, status: str) -> None:
    """Idea 5: done, failed, refused, unknown; nothing else, and nothing pretends."""
    assert outcome.status == status
    assert outcome.ok == (status == "done")
    assert bool(outcome.code) == (not outcome.ok)


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
