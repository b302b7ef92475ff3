"""The sliding window of counts."""

from __future__ import annotations

from agentgate.core.breaker_window import FAULT, OK, Window


def test_it_counts_for_eleven_to_twelve_buckets() -> None:
    """An outcome at the start of a bucket counts for 60 s, one at its end for 55 s."""
    window = Window(60.0)
    window.add(OK, 0.0)
    window.add(FAULT, 4.9)
    window.roll(59.9)
    assert window.totals == [1, 1, 0, 0]
    window.roll(60.0)
    assert window.totals == [0, 0, 0, 0]


def test_a_long_silence_forgets_everything() -> None:
    """However long nobody counted, the cost of catching up is one turn of the ring."""
    window = Window(60.0)
    window.add(OK, 3.0)
    window.roll(1e9)
    assert window.totals == [0, 0, 0, 0]


def test_time_that_goes_back_counts_as_now() -> None:
    """A time before the newest bucket counts into it, so nothing is lost or forgotten early."""
    window = Window(60.0)
    window.add(OK, 100.0)
    assert window.add(OK, 20.0) == 20
    assert window.totals == [2, 0, 0, 0]


def test_taking_back_is_bound_to_the_bucket() -> None:
    """What is still in the window can be taken back, what is not has gone by itself."""
    window = Window(60.0)
    bucket = window.add(FAULT, 0.0)
    window.add(FAULT, 0.0)
    window.take_back(FAULT, bucket, 59.0)
    assert window.totals == [0, 1, 0, 0]
    window.take_back(FAULT, bucket, 60.0)
    assert window.totals == [0, 0, 0, 0]


def test_clearing_forgets_everything() -> None:
    """A cleared window is an empty one."""
    window = Window(60.0)
    for second in range(0, 50, 7):
        window.add(OK, float(second))
    window.clear()
    assert window.totals == [0, 0, 0, 0]
