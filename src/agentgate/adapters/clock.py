"""The real time and real chance: the only place of the gate that reads them."""

from __future__ import annotations

import random
import secrets
import time
from typing import Final

POOL_BYTES: Final = 512  # asked of the operating system at a time; a call needs 32, and asking costs more than they do


class SystemClock:
    """Both readings follow the monotonic clock, which is the time base of asyncio's and uvloop's loops.

    `wall` is read once, at construction, and then runs on by itself: a clock that is set while the gate runs moves no
    record.
    """

    def __init__(self) -> None:
        self._wall_at_zero = time.time() - time.monotonic()

    now = staticmethod(time.monotonic)  # asked some thirty times a call

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self._wall_at_zero + time.monotonic()


class SystemChance:
    """Jitter from the ordinary generator, identifiers from the operating system's."""

    def __init__(self) -> None:
        self._random = random.Random()
        self._unread = ""

    def draw(self) -> float:
        """A float in [0, 1)."""
        return self._random.random()

    def token_hex(self, byte_count: int) -> str:
        """An unguessable hexadecimal string of twice that length."""
        length = 2 * byte_count
        if len(self._unread) < length:
            self._unread = secrets.token_hex(max(POOL_BYTES, byte_count))
        token, self._unread = self._unread[:length], self._unread[length:]
        return token
