"""A map that remote names cannot fill: at its limit, something old goes.

What is decided: which entry is forgotten when there is no room for a new one, and which have been idle for so long
that nobody will miss them.

Rules. The least recently used entry goes, except those that `keep(value)` protects: an open breaker, a lease. The
bound is hard, so when nothing unprotected is left, a protected one goes after all and is counted in `forced` as well:
state that is lost can be learnt again, a gate that refuses new names because of old ones cannot. `get` and setting are
use; `peek`, `in`, iteration and size are queries, and a query neither creates an entry nor makes it younger.

How it works. Entries stand in three rows, each in the order of use: *fresh*, *stale* (not used since the last turn
of `sweep`), and *held* (their turn to go had come, and they were protected; using one makes it fresh). An entry to be
forgotten is looked for at the heads of held, stale and fresh, in this order. Every entry moves to held at most once
between two uses, and of held only a fixed number is looked at, so that each operation is O(1) on average even when
everything is protected. `sweep` makes one turn in `idle_s`: what is stale goes, what is fresh becomes stale. So an
unprotected entry is forgotten after one to two times `idle_s` without use, and no use has to know the time.

Not covered: a protected entry is forgotten only for room, never for age; its owner removes it when it is over.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

# How many held entries one insertion looks at before a protected one has to go. More would find an unprotected one
# more surely, and cost more when everything is protected.
HELD_LOOKS: Final = 8


def _nothing(_value: object) -> bool:
    return False


class BoundedMap(Generic[K, V]):
    """At most `limit` entries; `keep` names values that should not go while others can."""

    __slots__ = ("_fresh", "_held", "_keep", "_stale", "_turned_at", "evictions", "forced", "limit")

    def __init__(self, limit: int, keep: Callable[[V], bool] | None = None) -> None:
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        self.limit = limit
        self.evictions = 0  # entries that went for room
        self.forced = 0  # of these, the protected ones
        self._keep = keep or _nothing
        self._fresh: OrderedDict[K, V] = OrderedDict()
        self._stale: OrderedDict[K, V] = OrderedDict()
        self._held: OrderedDict[K, V] = OrderedDict()
        self._turned_at: float | None = None

    def __len__(self) -> int:
        return len(self._fresh) + len(self._stale) + len(self._held)

    def __contains__(self, key: K) -> bool:
        return key in self._fresh or key in self._stale or key in self._held

    def __iter__(self) -> Iterator[K]:
        """Over the keys as they are now; the map may change meanwhile."""
        return iter([*self._held, *self._stale, *self._fresh])

    def __setitem__(self, key: K, value: V) -> None:
        fresh = self._fresh
        if key in fresh:
            fresh[key] = value
            fresh.move_to_end(key)
            return
        if key in self._stale:
            del self._stale[key]
        elif key in self._held:
            del self._held[key]
        elif len(self) >= self.limit:
            self._forget_one()
        fresh[key] = value

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: D | None = None) -> V | D | None:
        """The value, which becomes the most recently used one."""
        fresh = self._fresh
        if key in fresh:
            fresh.move_to_end(key)
            return fresh[key]
        row = self._stale if key in self._stale else self._held
        if key not in row:
            return default
        value = fresh[key] = row.pop(key)
        return value

    def peek(self, key: K) -> V | None:
        """The value, for a query: nothing is created and nothing becomes younger."""
        if key in self._fresh:  # nearly always, and asked several times a call
            return self._fresh[key]
        for row in (self._stale, self._held):
            if key in row:
                return row[key]
        return None

    def pop(self, key: K) -> V | None:
        """Remove an entry, if it is there, and return its value."""
        for row in (self._fresh, self._stale, self._held):
            if key in row:
                return row.pop(key)
        return None

    def items(self) -> list[tuple[K, V]]:
        """A copy of all entries; a query."""
        return list(chain(self._held.items(), self._stale.items(), self._fresh.items()))

    def sweep(self, now: float, idle_s: float) -> int:
        """Forget what has not been used for `idle_s` to twice `idle_s` seconds; returns how many went.

        To be called every now and then, with monotonic seconds; calls within `idle_s` of a turn do nothing.
        """
        if self._turned_at is not None and now - self._turned_at < idle_s:
            return 0
        self._turned_at = now
        held = self._held
        released = OrderedDict(entry for entry in held.items() if not self._keep(entry[1]))
        for key in released:
            del held[key]
        kept = [entry for entry in self._stale.items() if self._keep(entry[1])]
        gone = len(self._stale) - len(kept)
        held.update(kept)
        self._stale = released
        self._stale.update(self._fresh)
        self._fresh = OrderedDict()
        return gone

    def _forget_one(self) -> None:
        self.evictions += 1
        if self._forget_first_held(looks=1):
            return
        for row in (self._stale, self._fresh):
            while row:
                key, value = row.popitem(last=False)
                if not self._keep(value):
                    return
                self._held[key] = value
        if not self._forget_first_held(looks=HELD_LOOKS):
            self._held.popitem(last=False)
            self.forced += 1

    def _forget_first_held(self, looks: int) -> bool:
        """Forget the first of the longest held entries that is no longer protected; those looked at go to the end."""
        for _ in range(min(looks, len(self._held))):
            key, value = self._held.popitem(last=False)
            if not self._keep(value):
                return True
            self._held[key] = value
        return False
