"""How long a server asks to be left alone."""

from __future__ import annotations

import pytest

from agentgate.core.retry_after import seconds_of

NOON = "Sun, 06 Nov 1994 12:00:00 GMT"
WALL = 784_123_200.0  # the same moment


@pytest.mark.parametrize(
    ("text", "date", "seconds"),
    [
        (None, None, None),
        ("120", None, 120.0),
        (" 7 ", None, 7.0),
        ("0", None, 0.0),
        # a date, against the server's own clock
        ("Sun, 06 Nov 1994 12:00:30 GMT", NOON, 30.0),
        ("Sunday, 06-Nov-94 12:00:30 GMT", NOON, 30.0),
        ("Sun Nov  6 12:00:30 1994", NOON, 30.0),
        ("Sun, 06 Nov 1994 13:00:30 +0100", NOON, 30.0),
        ("Sun, 06 Nov 1994 11:00:00 GMT", NOON, 0.0),
        # without one, against ours
        ("Sun, 06 Nov 1994 12:00:30 GMT", None, 30.0),
        ("Sun, 06 Nov 1994 12:00:30 GMT", "nonsense", 30.0),
        # what cannot be read was not said
        ("", None, None),
        ("-1", None, None),
        ("1.5", None, None),
        ("soon", None, None),
        ("9" * 10, None, None),
        ("Sun, 06 Nov 99999 12:00:30 GMT", None, None),
        ("x" * 65, None, None),
    ],
)
def test_both_forms_are_read(text: str | None, date: str | None, seconds: float | None) -> None:
    """B4: seconds or a date, by the server's clock; 0 means 0, a passed date means 0, nonsense means nothing."""
    assert seconds_of(text, date, WALL) == seconds
