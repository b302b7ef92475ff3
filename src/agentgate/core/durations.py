"""The last so many durations of one kind of call, those included that nobody saw the end of.

What is kept: a window of samples. A call that was answered is a duration; one that was cut is *censored*: it took at
least as long as it was given, perhaps for ever. Censored samples count in the window, above every duration, until their
true duration comes to light; throwing them away would leave the survivors, and what they say is always "short enough".

Rules. A late answer takes the place of its own censored sample. When that has left the window already (at a high
rate, a window is over before the first late answer arrives), it takes the place of the oldest one still there, which
in turn will be replaced by another; only when none is left is it a sample of its own. So in a steady state the
censored samples in the window are those that never get an answer, whatever the rate.

How it works. A ring by arrival, a sorted list of the durations in it, and the numbers of the censored in order. An
addition costs a search and a short move in a list of at most `size` numbers.

Not covered: what follows for a time-out (`core.timeout`).
"""

from __future__ import annotations

from bisect import bisect_left, insort


class Durations:
    """A window of `size` samples, in seconds."""

    __slots__ = ("_added", "_ring", "_size", "censored", "known")

    def __init__(self, size: int) -> None:
        self.known: list[float] = []  # the durations in the window, sorted; to be read only
        self.censored: dict[int, None] = {}  # the numbers of the samples without an end, oldest first; to be read only
        self._added = 0  # samples so far; each one's number is its position in this count
        self._ring: list[float | None] = []
        self._size = size

    def add(self, duration_s: float) -> None:
        """A call was answered."""
        self._push(duration_s)
        insort(self.known, duration_s)

    def add_censored(self) -> int:
        """A call was cut; returns the number by which `resolve` knows it."""
        number = self._added
        self._push(None)
        self.censored[number] = None
        return number

    def resolve(self, number: int, duration_s: float) -> None:
        """The true duration of a call that was cut."""
        if number not in self.censored:
            if not self.censored:
                self.add(duration_s)
                return
            number = next(iter(self.censored))
        del self.censored[number]
        self._ring[number % self._size] = duration_s
        insort(self.known, duration_s)

    def resolve_share(self, share: float, duration_s: float) -> None:
        """Take that share of the censored, oldest first, to have lasted so long."""
        for number in list(self.censored)[: round(share * len(self.censored))]:
            self.resolve(number, duration_s)

    def quantile(self, percent: int, among: int) -> float:
        """The smallest duration that `percent` (from 1) of so many samples do not exceed, the longest known at most.

        `among` is the number of known durations, or with the censored, which lie above all of them. There must be a
        known duration.
        """
        known = self.known
        rank = (percent * among + 99) // 100
        return known[rank - 1] if rank < len(known) else known[-1]

    def _push(self, sample: float | None) -> None:
        place = self._added % self._size
        if self._added < self._size:
            self._ring.append(sample)
        else:
            old = self._ring[place]
            if old is None:
                del self.censored[self._added - self._size]
            else:
                del self.known[bisect_left(self.known, old)]
            self._ring[place] = sample
        self._added += 1
