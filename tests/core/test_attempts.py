"""The table of what follows an attempt, row by row, and how an outcome finds its row."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from agentgate.core.attempts import Ending, Next, after_attempt, ending
from agentgate.errors import CODES, FAULTS, Fault
from agentgate.model import Outcome, Problem

# As in DESIGN 4.1: the ending, then a read or a repeatable skill, then every other write.
ROWS: list[tuple[Ending, Next, Next]] = [
    ("answered", "final", "final"),
    ("not_sent", "retry", "retry"),
    ("try_later", "retry", "retry"),
    ("throttled", "retry", "retry"),
    ("timed_out", "retry", "wait_on"),
    ("lost", "retry", "ask_check"),
    ("handler_raised", "retry", "final"),
    ("malformed", "final", "final"),
    ("rejected", "final", "final"),
    ("refused", "final", "final"),
]


def failed(code: str, fault: Fault, *, sent: bool) -> Outcome:
    return Outcome(error=Problem(code=code, fault=fault, sent=sent))


@pytest.mark.parametrize(("ended", "safe", "write"), ROWS)
def test_the_table_is_the_documented_one(ended: Ending, safe: Next, write: Next) -> None:
    """B4, B5, C4: every ending has the two successors of the design's table."""
    assert (after_attempt(ended, repeatable=True), after_attempt(ended, repeatable=False)) == (safe, write)


def test_the_table_is_complete() -> None:
    """Every ending has its row."""
    assert {row[0] for row in ROWS} == set(get_args(Ending))


@pytest.mark.parametrize(
    ("code", "fault", "sent", "ended"),
    [
        ("agent_lost", "unreachable", False, "not_sent"),
        ("no_route", "unreachable", False, "not_sent"),
        ("deadline_exceeded", "unreachable", True, "timed_out"),
        ("deadline_exceeded", "unreachable", False, "refused"),
        ("agent_lost", "unreachable", True, "lost"),
        ("outcome_unknown", "unreachable", True, "lost"),
        ("overloaded", "throttled", False, "try_later"),
        ("overloaded", "throttled", True, "try_later"),
        ("rate_limited", "throttled", True, "throttled"),
        ("rate_limited", "throttled", False, "throttled"),
        ("handler_error", "handler_error", True, "handler_raised"),
        ("rejected", "rejected", True, "rejected"),
        ("malformed_output", "malformed", True, "malformed"),
        ("overloaded", "refused", False, "refused"),
        ("rate_limited", "refused", False, "refused"),
        ("bad_request", "caller", False, "refused"),
        ("cancelled", "cancelled", True, "refused"),
        ("store_down", "internal", True, "refused"),
    ],
)
def test_an_outcome_finds_its_row(code: str, fault: Fault, sent: bool, ended: Ending) -> None:
    """B4: code, fault and `sent` decide how an attempt ended; the gate's own refusals are no fault of the target."""
    assert ending(failed(code, fault, sent=sent)) == ended


def test_a_value_is_an_answer() -> None:
    """An outcome without an error is final, whatever its value."""
    assert ending(Outcome(value=None)) == "answered"


@pytest.mark.parametrize(("code", "fault", "sent"), list(product(CODES, FAULTS, [True, False])))
def test_nothing_that_may_have_happened_runs_twice(code: str, fault: Fault, sent: bool) -> None:
    """C4: over all codes and faults, a write is retried only when nothing was sent or the target took nothing on."""
    retried = after_attempt(ending(failed(code, fault, sent=sent)), repeatable=False) == "retry"
    assert retried <= (not sent or fault == "throttled")
