"""One timer that is set anew all the time; it knows itself when it rings, which not every loop's handle does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """Calls `ring` once at the time it was set to last, on the running loop."""

    __slots__ = ("_at", "_ring", "_timer")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._at: float | None = None
        # Of a time that is now, uvloop gives a plain handle: one without `when`.
        self._timer: asyncio.Handle | None = None

    def set(self, at: float | None) -> None:
        """Ring at this loop time, and at no other; None: not at all."""
        if at == self._at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at = at
        self._timer = None if at is None else asyncio.get_running_loop().call_at(at, self._on_time)

    def _on_time(self) -> None:
        self._at = self._timer = None
        self._ring()
