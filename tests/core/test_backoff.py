"""Waits by example: growth, caps, zeros, and every spelling of Retry-After."""

from __future__ import annotations

from math import inf, nan

import pytest

from agentgate.core.backoff import Backoff, BackoffOptions, parse_retry_after

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of the HTTP standard


def none() -> float:
    return 0.0


def half() -> float:
    return 0.5


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 20.0), (10**9, 20.0)])
def test_waits_double_up_to_the_cap(failures: int, seconds: float) -> None:
    """B5: 500 ms times two to the number of failures before, never above the cap; jitter comes on top."""
    backoff = Backoff(BackoffOptions())
    assert backoff.delay_s(failures, none) == seconds
    assert backoff.delay_s(failures, half) == seconds + 0.1


@pytest.mark.parametrize(("asked", "seconds"), [(0.0, 0.0), (0.5, 0.75), (1.0, 1.5), (30.0, 30.5), (-5.0, 0.0)])
def test_a_named_time_is_waited_for(asked: float, seconds: float) -> None:
    """B5: Retry-After r means r plus a random part of at most r or a second; 0 means now, not the default."""
    backoff = Backoff(BackoffOptions())
    assert backoff.delay_s(3, none, asked) == max(asked, 0.0)
    assert backoff.delay_s(3, half, asked) == seconds


def test_zero_means_zero() -> None:
    """F48: base, jitter and cap of 0 give no wait at all."""
    assert Backoff(BackoffOptions(base_s=0.0)).delay_s(3, half) == 0.1
    assert Backoff(BackoffOptions(jitter_s=0.0)).delay_s(2, half) == 1.0
    assert Backoff(BackoffOptions(cap_s=0.0, jitter_s=0.0)).delay_s(2, half) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("99999999999999999999", 86_400.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Wed Nov 16 08:49:37 1994", 86_400.0),
        ("Sun, 06 Nov 1994 08:49:07 GMT", 0.0),
        ("Sun, 06 Nov 1994 08:49:60 GMT", 22.0),
        ("Monday, 06-Nov-44 08:49:37 GMT", 86_400.0),
        ("Monday, 06-Nov-45 08:49:37 GMT", 0.0),
    ],
)
def test_retry_after_in_every_spelling(text: str, seconds: float) -> None:
    """B5: seconds and the three forms of an HTTP date; the past is now, and a day is the most anyone waits."""
    assert parse_retry_after(text, NOW) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "-1", "+1", "1e3", "inf", "nan", "1.", ".5", "1,5", "\u0663", "9" * 400, "1.5s"),
        *("Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT"),
        *("Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT"),
        *("Sun, 06 Nov 0000 08:49:37 GMT\x00", "2026-10-01T00:00:00Z"),
    ],
)
def test_what_is_no_time_is_absent(text: str) -> None:
    """An unreadable Retry-After counts as none; it is never taken for 0."""
    assert parse_retry_after(text, NOW) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("base_s", -0.1), ("base_s", 61.0), ("jitter_s", nan), ("jitter_s", 61.0)),
        *(("attempts_max", 0), ("attempts_max", 21), ("cap_s", inf), ("cap_s", -1.0)),
    ],
)
def test_options_out_of_range_are_refused(field: str, value: float) -> None:
    """A wait that cannot be meant is refused when it is read, and so are no attempts at all."""
    with pytest.raises(ValueError, match=f"{field} must be a number from"):
        BackoffOptions(**{field: value})  # type: ignore[arg-type]  # a wrong value is the point
