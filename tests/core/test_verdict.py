"""Fault classes and what they say about the target."""

from __future__ import annotations

import pytest

from agentgate.core.verdict import InstanceVerdict, Verdict, instance_verdict, verdict_of
from agentgate.errors import CODES, FAULTS, Fault
from agentgate.model import Outcome, Problem, failure

# One row for each fault class and "was it sent": what the agent's breakers and the instance's record hear.
EXPECTED: dict[tuple[Fault, bool], tuple[Verdict, InstanceVerdict]] = {
    ("unreachable", True): ("unanswered", "fault"),
    ("unreachable", False): ("unconnected", "fault"),
    ("throttled", True): ("neutral", "neutral"),
    ("throttled", False): ("neutral", "neutral"),
    ("malformed", True): ("neutral", "neutral"),
    ("malformed", False): ("neutral", "neutral"),
    ("rejected", True): ("rejected", "ok"),
    ("rejected", False): ("rejected", "ok"),
    ("handler_error", True): ("raised", "fault"),
    ("handler_error", False): ("raised", "fault"),
    ("refused", True): ("neutral", "neutral"),
    ("refused", False): ("neutral", "neutral"),
    ("cancelled", True): ("neutral", "neutral"),
    ("cancelled", False): ("neutral", "neutral"),
    ("caller", True): ("neutral", "neutral"),
    ("caller", False): ("neutral", "neutral"),
    ("internal", True): ("neutral", "neutral"),
    ("internal", False): ("neutral", "neutral"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("sent", [True, False])
def test_every_fault_class_has_its_verdict(fault: Fault, sent: bool) -> None:
    """B4: only what is the target's doing counts; throttled, malformed, refused and cancelled are neutral."""
    outcome = Outcome(error=Problem(code="internal", fault=fault, sent=sent))
    assert (verdict_of(outcome), instance_verdict(outcome)) == EXPECTED[fault, sent]


def test_a_value_is_a_good_answer() -> None:
    """An outcome without an error is ok, whatever its value."""
    assert (verdict_of(Outcome(value=None)), instance_verdict(Outcome())) == ("ok", "ok")


@pytest.mark.parametrize(("sent", "verdict"), [(True, "unanswered"), (False, "neutral")])
def test_a_deadline_that_passed_before_sending_blames_nobody(sent: bool, verdict: Verdict) -> None:
    """B4: what was never asked cannot have failed."""
    assert verdict_of(failure("deadline_exceeded", sent=sent)) == verdict


def test_a_degraded_answer_says_nothing_about_the_target() -> None:
    """F6: it stands in for an answer that did not come."""
    assert verdict_of(Outcome(value=1, degraded=True)) == "neutral"


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_has_a_verdict(code: str) -> None:
    """No error code falls through the table."""
    assert instance_verdict(failure(code, sent=True)) in ("ok", "fault", "neutral")
