"""The one error tree and the table of codes."""

from __future__ import annotations

import inspect

import pytest

from agentgate import errors
from agentgate.errors import CODES, FAULTS, AgentGateError, CallFailed, OutcomeUnknown, Rejected, TryLater, WireError

EXCEPTIONS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_the_tree_in_the_docstring_is_the_tree(kind: type[Exception]) -> None:
    """Whoever catches the root catches everything, and the drawing names every class."""
    assert issubclass(kind, AgentGateError)
    assert kind.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("code", CODES)
def test_every_code_says_what_to_do(code: str) -> None:
    """B6: fault, retry advice and a sentence that an agent can act on belong to every code."""
    info = CODES[code]
    assert info.fault in FAULTS
    assert info.retry in ("never", "after")
    assert 400 <= info.http_status <= 599
    assert info.title
    assert info.advice.endswith(".")


def test_a_broken_breaker_never_asks_for_a_retry() -> None:
    """B6: the answer to an open breaker is a definite no."""
    assert CODES["breaker_open"].retry == "never"


def test_errors_carry_data() -> None:
    """What a caller branches on is an attribute, not text."""
    failed = OutcomeUnknown(code="outcome_unknown", fault="unreachable", sent=True, detail="gone", retry_after_ms=5)
    assert isinstance(failed, CallFailed)
    assert (failed.code, failed.sent, failed.retry, failed.retry_after_ms) == ("outcome_unknown", True, "never", 5)
    assert str(failed) == "outcome_unknown: gone"
    assert str(CallFailed(code="x", fault="caller", sent=False, advice="do so")) == "x: do so"
    assert (Rejected("no", detail=1).reason, Rejected("no", detail=1).detail) == ("no", 1)
    later = TryLater(after=2.5, everyone=True)
    assert (str(later), later.after_s, later.everyone) == ("try later", 2.5, True)
    assert WireError("bad").code == "bad_request"


def test_without_a_detail_the_code_is_said_in_words() -> None:
    """I1: the text of an error says what happened; what to do next is its advice."""
    failed = CallFailed(code="deadline_exceeded", fault="unreachable", sent=True, advice="Repeat it later.")
    assert str(failed) == "deadline_exceeded: The deadline passed before an answer came"
