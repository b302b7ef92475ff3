"""When to look again: a heap of times, most of which will never matter.

Decides nothing; it remembers at which moments its owner has to do something. Most entries are deadlines of calls that
end long before. The rules:

- An entry whose item is no longer `waiting` is dead. It is dropped when it comes to the top, and it is never named.
- The heap is rebuilt when more than half of it is dead, so its size stays within twice what is alive.

Not covered: what is to be done at those moments.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Final, Generic, Protocol, TypeVar


class Waiter(Protocol):
    """Something that waits for a time, unless it has stopped waiting."""

    @property
    def waiting(self) -> bool:
        """Whether the alarm still matters."""
        ...


W = TypeVar("W", bound=Waiter)

SLACK: Final = 64  # dead entries that are not worth a rebuild


class Alarms(Generic[W]):
    """Items by the time at which they are due."""

    __slots__ = ("_heap", "_rebuild_at", "_serial")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, W]] = []
        self._serial = 0  # entries of the same time keep their order, and items are never compared
        self._rebuild_at = SLACK

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, at: float, item: W) -> None:
        """Be reminded of the item at that time."""
        if len(self._heap) >= self._rebuild_at:
            self._rebuild()
        self._serial += 1
        heappush(self._heap, (at, self._serial, item))

    def next(self) -> float | None:
        """The time of the first live entry."""
        heap = self._heap
        while heap and not heap[0][2].waiting:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop_due(self, now: float) -> list[W]:
        """Take out the live items whose time has come, in order."""
        due: list[W] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            item = heappop(heap)[2]
            if item.waiting:
                due.append(item)
        return due

    def _rebuild(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2].waiting]
        heapify(self._heap)
        self._rebuild_at = 2 * len(self._heap) + SLACK
