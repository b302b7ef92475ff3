"""The recent past of a breaker: counts of outcomes in a sliding window of time.

Decides nothing; it counts. The window is cut into buckets, so that adding, forgetting and taking back cost the same
however many outcomes there were, and memory does not depend on traffic.

Rules. The window covers the current bucket and the ones before it, that is between 11/12 and 12/12 of its width: with
60 s an outcome counts for 55 to 60 s. A slow answer is counted twice, as `ok` and as `slow`. An outcome can be taken
back as long as its bucket is still in the window. Time that goes backwards counts into the newest bucket.

How it works. A bucket is a row of four counters in a ring; `totals` is kept beside the ring, so that reading a ratio
adds nothing up. Buckets are cleared when time first reaches them again.
"""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAULT: Final = 1
SLOW: Final = 2
REJECTED: Final = 3
KINDS: Final = 4

BUCKETS: Final = 12  # one outcome moves the window by at most 1/12: fine enough for ratios, small enough for thousands


class Window:
    """Outcomes of the last `width_s` seconds, by kind."""

    __slots__ = ("_bucket_s", "_newest", "_ring", "totals")

    def __init__(self, width_s: float) -> None:
        self._bucket_s = width_s / BUCKETS
        self._newest = 0
        self._ring = [[0] * KINDS for _ in range(BUCKETS)]
        self.totals = [0] * KINDS

    def add(self, kind: int, now: float) -> int:
        """Count one outcome; the answer names its bucket, for `take_back`."""
        bucket = self.roll(now)
        self._ring[bucket % BUCKETS][kind] += 1
        self.totals[kind] += 1
        return bucket

    def take_back(self, kind: int, bucket: int, now: float) -> None:
        """Uncount one outcome of that bucket, unless time has already forgotten it."""
        if bucket > self.roll(now) - BUCKETS:
            self._ring[bucket % BUCKETS][kind] -= 1
            self.totals[kind] -= 1

    def roll(self, now: float) -> int:
        """Forget what is too old; the answer is the current bucket."""
        bucket = int(now / self._bucket_s)
        if bucket > self._newest:
            for stale in range(max(self._newest + 1, bucket - BUCKETS + 1), bucket + 1):
                self._forget(self._ring[stale % BUCKETS])
            self._newest = bucket
        return self._newest

    def clear(self) -> None:
        """Forget everything."""
        for row in self._ring:
            self._forget(row)

    def _forget(self, row: list[int]) -> None:
        for kind, count in enumerate(row):
            if count:
                self.totals[kind] -= count
                row[kind] = 0
