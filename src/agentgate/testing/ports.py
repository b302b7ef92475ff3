"""The outside world of a simulated platform: its time and its chance."""

from __future__ import annotations

import random
from collections.abc import Callable

EPOCH_S = 1_800_000_000.0  # some day in 2027: wall time that cannot be taken for monotonic time by accident


class VirtualClock:
    """Measures in the loop's time. `wall` may be set: what a clock change is to records."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.wall_at_zero = EPOCH_S

    def now(self) -> float:
        """The loop's time."""
        return self._now()

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self.wall_at_zero + self._now()


class SeededChance:
    """Repeatable chance; guessable, so for tests only."""

    def __init__(self, draws: random.Random) -> None:
        self._draws = draws

    def draw(self) -> float:
        """A float in [0, 1)."""
        return self._draws.random()

    def token_hex(self, byte_count: int) -> str:
        """A hexadecimal string of twice that length."""
        return self._draws.randbytes(byte_count).hex()
