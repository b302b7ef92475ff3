"""What holds for the summary of anything."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.summary import LENGTH_MAX, outcome_summary, summary
from agentgate.model import Outcome, Problem

KEYS = (
    st.text(max_size=5) | st.sampled_from(["password", "a_token", "Cookie", "max_tokens"]) | st.integers() | st.none()
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(exclude_categories=[]))
    | st.binary()
    | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=5) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=5) | st.sets(KEYS)
    ),
    max_leaves=40,
)


@given(VALUES)
def test_a_summary_is_one_short_printable_line(value: Any) -> None:
    """Never raises, never longer than its limit, never a line break or a control character."""
    text = summary(value)
    assert 0 < len(text) <= LENGTH_MAX
    assert text.isprintable()


@given(st.text(alphabet=st.characters(exclude_categories=[])))
def test_the_summary_of_an_error_is_one_short_printable_line(detail: str) -> None:
    """The words of a stranger's error cannot break out of their line."""
    text = outcome_summary(Outcome(error=Problem(code="internal", fault="internal", detail=detail)))
    assert text.startswith("internal")
    assert len(text) <= LENGTH_MAX
    assert text.isprintable()


@given(VALUES, st.lists(st.sampled_from(["items", "a", "b"]), max_size=4))
def test_a_secret_is_not_shown_wherever_it_lies(value: Any, path: list[str]) -> None:
    """A value under a secret key does not appear, whatever stands around it."""
    payload: Any = {"beside": value, "db_password": "hunter2-in-the-clear"}
    for name in path:
        payload = {name: [payload, value]}
    assert "hunter2" not in summary(payload)
