"""The traceparent header."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.traceparent import TraceParent, format_traceparent, parse_traceparent

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
HEX = "0123456789abcdef"


def ids(digits: int) -> st.SearchStrategy[str]:
    return st.text(HEX, min_size=digits, max_size=digits).filter(lambda text: text.strip("0"))


@given(ids(32), ids(16), st.booleans())
def test_what_is_written_is_read_again(trace_id: str, span_id: str, sampled: bool) -> None:
    """H1: every pair of ids but the zeros goes through the header unchanged."""
    assert parse_traceparent(format_traceparent(trace_id, span_id, sampled=sampled)) == (trace_id, span_id, sampled)


@pytest.mark.parametrize(("flags", "sampled"), [("00", False), ("01", True), ("02", False), ("ff", True)])
def test_only_the_first_flag_means_anything(flags: str, sampled: bool) -> None:
    """Version 00 knows one flag; the others are ignored."""
    assert parse_traceparent(f"00-{TRACE}-{SPAN}-{flags}") == TraceParent(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"01-{TRACE}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-extra",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}0-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0",
        f"00_{TRACE}_{SPAN}_01",
        f"00-{TRACE}-{SPAN}-0g",
    ],
)
def test_anything_else_is_no_trace(text: str) -> None:
    """A header that is not exactly right is ignored, never an error."""
    assert parse_traceparent(text) is None


@given(st.text(max_size=80))
def test_garbage_never_raises(text: str) -> None:
    """Whatever the outside sends, the answer is None."""
    assert parse_traceparent(text) is None
