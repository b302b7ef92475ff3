"""Which keyed answers of one instance may be forgotten by it.

Answers carry `seq`, counted from 1 by the instance, and arrive in that order (one ordered stream; after a reconnect
the kept ones are reported again, in order). They are settled on disk in any order. The acknowledgement is cumulative:
`settled` returns the highest number below which nothing received is still open.
"""

from __future__ import annotations


class Acks:
    """The answers received from one instance and not yet acknowledged; bounded by what the instance keeps."""

    def __init__(self) -> None:
        self.acked = 0
        self._open: dict[int, bool] = {}  # seq -> settled, in order of arrival

    def received(self, seq: int) -> None:
        """An answer came; it has to be settled before it can be acknowledged."""
        if seq > self.acked:
            self._open.setdefault(seq, False)

    def settled(self, seq: int) -> int | None:
        """It is on disk. Returns the new cumulative acknowledgement, if this moves it."""
        if seq not in self._open:
            return None
        self._open[seq] = True
        before = self.acked
        while self._open and self._open[first := next(iter(self._open))]:
            del self._open[first]
            self.acked = max(self.acked, first)
        return self.acked if self.acked > before else None
