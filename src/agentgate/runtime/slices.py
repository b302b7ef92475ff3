"""Long work in slices, between which the event loop serves everybody else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgate.ports.clock import Clock


class Slices:
    """Begins with the first slice; `slice_s` is how long one may hold the loop, in seconds."""

    __slots__ = ("_clock", "_ends", "_slice_s")

    def __init__(self, clock: Clock, slice_s: float) -> None:
        self._clock = clock
        self._slice_s = slice_s
        self._ends = clock.now() + slice_s

    async def pause_if_over(self) -> None:
        """To be called between two small pieces: lets the others go first when the slice is used up."""
        if self._clock.now() >= self._ends:
            await asyncio.sleep(0)
            self._ends = self._clock.now() + self._slice_s
