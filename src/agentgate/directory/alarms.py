"""One timer for many deadlines that are put off all the time.

Every frame of an instance puts its silence off; moving an entry in a heap each time would cost more than the frame.
So an entry stays where it is and is looked at when it comes up: whoever was heard in between is set again, later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

STALE_MIN: Final = 64  # fewer dead entries than this are not worth a rebuild


class Alarms(Generic[Item]):
    """At most one live entry an item; a loop's timer rings at the earliest one once `start` was called."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._heap: list[tuple[float, int, Item]] = []
        self._times: dict[Item, float] = {}
        self._pushed = 0  # keeps items of equal time in order, and from being compared
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0  # uvloop's handle of a time that is now does not know it

    def set(self, item: Item, time: float) -> None:
        """Look at the item at this time, unless it comes up earlier anyway."""
        if time >= self._times.get(item, float("inf")):
            return
        self._times[item] = time
        self._pushed += 1
        heappush(self._heap, (time, self._pushed, item))
        if len(self._heap) > 2 * len(self._times) + STALE_MIN:
            self._rebuild()
        self._arm()

    def clear(self, item: Item) -> None:
        """Forget the item."""
        self._times.pop(item, None)

    def due(self, now: float) -> Iterator[Item]:
        """Take out, one after the other, the items whose time has come."""
        while (time := self.next_deadline()) is not None and time <= now:
            item = heappop(self._heap)[2]
            del self._times[item]
            yield item

    def next_deadline(self) -> float | None:
        """The time of the earliest entry."""
        while self._heap and self._times.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ring by itself from now on."""
        self._loop = loop
        self._arm()

    def stop(self) -> None:
        """Do not ring any more."""
        self._loop = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        time = self.next_deadline()
        if self._loop is None or time is None:
            return
        if self._timer is not None:
            if self._rings_at <= time:
                return
            self._timer.cancel()
        self._rings_at = time
        self._timer = self._loop.call_at(time, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        try:
            self._ring()
        finally:
            self._arm()

    def _rebuild(self) -> None:
        self._heap = [entry for entry in self._heap if self._times.get(entry[2]) == entry[0]]
        heapify(self._heap)
