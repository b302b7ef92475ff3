"""Time and chance, handed in so that a simulation can own them."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Two readings: one for measuring, one for records."""

    def now(self) -> float:
        """Monotonic seconds, for deadlines and durations; equals the running event loop's `time()`."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, for records only; never compared between machines."""
        ...


class Chance(Protocol):
    """Where randomness comes from."""

    def draw(self) -> float:
        """A float in [0, 1)."""
        ...

    def token_hex(self, byte_count: int) -> str:
        """An unguessable hexadecimal string of twice that length."""
        ...
