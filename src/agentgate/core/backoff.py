"""How long to wait before the next attempt.

Rules. After the n-th failure: `base * 2^(n-1)`, at most `cap`, plus a random part of `jitter`, so that those who failed
together do not come back together (FAILURES F27). When the other side names a time r (Retry-After), it is that time
plus up to r or a second, whichever is less: never earlier than asked, and never all at the same moment. 0 is a value
everywhere: a Retry-After of 0 means now, a jitter of 0 none, and none of them falls back to a default (FAILURES F48).

Retry-After comes in two forms, seconds and an HTTP date (three spellings, RFC 9110 5.6.7). A date in the past means
now. What is neither is treated as absent. A wish of more than a day is cut to a day: by then nobody waits any more.

Used by the gate's retry loop and by the SDK when it connects, so it depends on nothing that the SDK may not have.

Not covered: whether to try again (`core.attempts`, `core.budget`), and that no wait passes the deadline: the caller of
`delay_s` compares, for only it knows what else has to fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from agentgate.core.ranges import require

RETRY_AFTER_MAX_S: Final = 86_400.0
DOUBLINGS_MAX: Final = 30  # beyond any cap; keeps the power finite for any number of failures

_SECONDS: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = f"(?P<month>{'|'.join(_MONTHS)})"
_TIME: Final = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES: Final = (
    # Sun, 06 Nov 1994 08:49:37 GMT
    re.compile(f"[A-Za-z]{{3}}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    # Sunday, 06-Nov-94 08:49:37 GMT
    re.compile(f"[A-Za-z]{{6,9}}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    # Sun Nov  6 08:49:37 1994
    re.compile(f"[A-Za-z]{{3}} {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)
_CENTURY: Final = 100
_YEARS_AHEAD_MAX: Final = 50  # of the years with these last two digits, the one at most this far ahead (RFC 9110)


@dataclass(frozen=True, kw_only=True)
class BackoffOptions:
    """How waits grow and how often an attempt is made."""

    # REQUIREMENTS B5. Shorter meets a target that has not recovered, longer is felt by people. 0: no wait but jitter.
    base_s: float = 0.5
    jitter_s: float = 0.2
    # REQUIREMENTS B5 and the SRE book. 1 means no retry; 0 would mean no call at all and is refused.
    attempts_max: int = 3
    # Before jitter. Never reached with three attempts; an SDK that reconnects for hours stops growing here.
    cap_s: float = 20.0

    def __post_init__(self) -> None:
        require(self, "base_s", "jitter_s", high=60.0)
        require(self, "attempts_max", low=1, high=20)
        require(self, "cap_s", high=3600.0)


class Backoff:
    """The waits of one kind of attempt."""

    __slots__ = ("options",)

    def __init__(self, options: BackoffOptions) -> None:
        self.options = options

    def delay_s(self, failures: int, draw: Callable[[], float], retry_after_s: float | None = None) -> float:
        """Seconds to wait after so many failures in a row (from 1); `draw` gives floats in [0, 1)."""
        if retry_after_s is not None:
            asked_s = max(retry_after_s, 0.0)
            return asked_s + draw() * min(asked_s, 1.0)
        options = self.options
        doubled = options.base_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX)
        return min(doubled, options.cap_s) + draw() * options.jitter_s


def parse_retry_after(text: str, now_wall: float) -> float | None:
    """Seconds to wait as a Retry-After field says, or None when it says nothing. `now_wall` is Unix time."""
    text = text.strip()
    if _SECONDS.fullmatch(text) is not None:
        return min(float(text), RETRY_AFTER_MAX_S)
    moment = _parse_date(text, now_wall)
    return None if moment is None else min(max(moment - now_wall, 0.0), RETRY_AFTER_MAX_S)


def _parse_date(text: str, now_wall: float) -> float | None:
    found = next((match for pattern in _DATES if (match := pattern.fullmatch(text)) is not None), None)
    if found is None:
        return None
    second = min(int(found["second"]), 59)  # 60 is a leap second, which datetime does not know
    year = _full_year(int(found["year"]), now_wall)
    month = _MONTHS.index(found["month"]) + 1
    try:
        return datetime(
            year, month, int(found["day"]), int(found["hour"]), int(found["minute"]), second, tzinfo=UTC
        ).timestamp()
    except ValueError:
        return None


def _full_year(year: int, now_wall: float) -> int:
    if year >= _CENTURY:
        return year
    latest = datetime.fromtimestamp(now_wall, UTC).year + _YEARS_AHEAD_MAX
    return latest - (latest - year) % _CENTURY
