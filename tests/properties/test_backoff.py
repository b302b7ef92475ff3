"""What holds for every wait."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.backoff import RETRY_AFTER_MAX_S, Backoff, BackoffOptions, parse_retry_after

SECONDS = st.floats(min_value=0.0, max_value=60.0)
OPTIONS = st.builds(BackoffOptions, base_s=SECONDS, jitter_s=SECONDS, cap_s=st.floats(min_value=0.0, max_value=3600.0))


@given(OPTIONS, st.integers(min_value=1, max_value=10_000), st.floats(min_value=0.0, max_value=1.0, exclude_max=True))
def test_waits_grow_and_stay_bounded(options: BackoffOptions, failures: int, drawn: float) -> None:
    """Never negative, never above cap plus jitter, never shorter after one failure more."""
    backoff = Backoff(options)
    delay = backoff.delay_s(failures, lambda: drawn)
    assert 0.0 <= delay <= options.cap_s + options.jitter_s
    assert backoff.delay_s(failures + 1, lambda: drawn) >= delay


@given(st.floats(min_value=0.0, max_value=1e6), st.floats(min_value=0.0, max_value=1.0, exclude_max=True))
def test_nobody_comes_before_the_time_named(asked: float, drawn: float) -> None:
    """Retry-After is a lower bound, exceeded by a second at most."""
    delay = Backoff(BackoffOptions()).delay_s(1, lambda: drawn, asked)
    assert asked <= delay <= asked + 1.0


def test_clients_that_failed_together_come_back_apart() -> None:
    """F27: twenty clients with seeds of their own have at least ten different waits after every number of failures."""
    backoff = Backoff(BackoffOptions())
    for failures in range(1, 8):
        delays = {round(backoff.delay_s(failures, Random(seed).random), 3) for seed in range(20)}
        assert len(delays) >= 10


@given(st.integers(min_value=0, max_value=4_000_000_000), st.integers(min_value=-200_000, max_value=200_000))
def test_a_date_is_read_as_the_standard_library_writes_it(now: int, ahead: int) -> None:
    """Any HTTP date gives the seconds until then, between now and a day."""
    text = format_datetime(datetime.fromtimestamp(max(now + ahead, 0), UTC), usegmt=True)
    expected = min(max(max(now + ahead, 0) - now, 0), RETRY_AFTER_MAX_S)
    assert parse_retry_after(text, float(now)) == expected


@given(st.text(max_size=40))
def test_any_text_is_read(text: str) -> None:
    """No text raises, and what is read is a time one can wait."""
    seconds = parse_retry_after(text, 1e9)
    assert seconds is None or 0.0 <= seconds <= RETRY_AFTER_MAX_S
