"""The real time and real chance: the only place of the gate that reads them."""

from __future__ import annotations

import random
import secrets
import time


class SystemClock:
    """Both readings follow the monotonic clock, which is the time base of asyncio's and uvloop's loops.

    `wall` is read once, at construction, and then runs on by itself: a clock that is set while the gate runs moves no
    record.
    """

    def __init__(self) -> None:
        self._wall_at_zero = time.time() - time.monotonic()

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self._wall_at_zero + time.monotonic()


class SystemChance:
    """Jitter from the ordinary generator, identifiers from the operating system's."""

    def __init__(self) -> None:
        self._random = random.Random()

    def draw(self) -> float:
        """A float in [0, 1)."""
        return self._random.random()

    def token_hex(self, byte_count: int) -> str:
        """An unguessable hexadecimal string of twice that length."""
        return secrets.token_hex(byte_count)
