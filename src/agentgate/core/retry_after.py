"""Retry-After: how long a server asks to be left alone, in both forms of the header (RFC 9110).

Decides how many seconds a text stands for. Rules: a whole number counts seconds, and 0 means 0 (FAILURES F48). A date
is a moment of the server's own clock, so it is held against the `Date` of the same answer; the reader's clock stands
in only when there is none, because clocks of two machines disagree. A moment that has passed means 0. Any other text
means nothing at all: it is as if the header were not there.

Not covered: how long a wish is honoured (`core.cool_down` and the gateway bound it).
"""

from __future__ import annotations

import re
from calendar import timegm
from email.utils import parsedate_tz
from typing import Final

_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_LENGTH_MAX: Final = 64  # the longest form of a date has 33 characters


def seconds_of(text: str | None, date: str | None, wall: float) -> float | None:
    """The seconds to wait; None when nothing (or nothing readable) was said. `wall` is seconds since the epoch."""
    if text is None:
        return None
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    until = _moment(text)
    if until is None:
        return None
    said_at = _moment(date) if date is not None else None
    return max(0.0, until - (wall if said_at is None else said_at))


def _moment(text: str) -> float | None:
    if len(text) > _LENGTH_MAX:
        return None
    try:
        parts = parsedate_tz(text)
        if parts is None:
            return None
        # One without a zone is meant as GMT: the oldest form of the header's date has none.
        return float(timegm(parts[:9]) - (parts[9] or 0))
    except (ValueError, IndexError, OverflowError):
        return None
