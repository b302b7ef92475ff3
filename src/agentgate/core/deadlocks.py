"""What became of the knots that were found: counted, and followed until their waits have ended.

Decides when a deadlock counts as resolved. The rules (D2, D3):

- A knot is *refused* when the wait that would have closed it was not begun, *confirmed* when the timer found it. Where
  nobody heeds it (observe mode), it counts as *observed_closing* or *observed_standing* instead.
- It is resolved when every wait of its cycle has ended before its own deadline. One that ended by its deadline was
  found and did not help: the knot counts as late.
- A knot that is found again while all of its waits stand is the same one. Once one of them has ended, the timer has
  found another one, be it of the same units. A unit that is refused, and tries the same again, is in one knot all the
  time: what is kept of it must not grow with its tries.

How it works. The waits that are followed are kept by identity, each with the records of the knots it is in; a wait that
ends is taken out of all of them. Waits end at their deadlines at the latest, so the map is as large as what waits.

Not covered: what is done about a knot (`core.victim`, the timer).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from msgspec import Struct

from agentgate.core.open_wait import OpenWait

How = Literal["refused", "confirmed", "observed_closing", "observed_standing"]
OBSERVED: Final[dict[How, How]] = {"refused": "observed_closing", "confirmed": "observed_standing"}


class _Followed(Struct, eq=False):
    """A knot whose waits have not all ended."""

    units: frozenset[str]
    open: int
    stands: bool = True
    late: bool = False


class Deadlocks:
    """Totals since the gate's start. Times in seconds."""

    def __init__(self) -> None:
        self.by_how: dict[How, int] = dict.fromkeys(get_args(How), 0)
        self.resolved = 0
        self.late = 0
        self.phantoms = 0  # what looked like a knot to the timer, and was none when it looked again
        self.signal_s_max = 0.0  # from the closing of a knot, as far as its youngest wait tells, to the first signal
        self.wait_s_max = 0.0  # the longest wait that has ended
        self._followed: dict[OpenWait, list[_Followed]] = {}

    @property
    def found(self) -> int:
        """All knots, each once."""
        return sum(self.by_how.values())

    @property
    def followed(self) -> int:
        """Waits of knots that have not all ended."""
        return len(self._followed)

    def note(self, how: How, waits: Iterable[OpenWait], now: float) -> bool:
        """A knot with these waits, none of them ended; False: it is followed already."""
        waits = list(waits)
        units = frozenset(wait.unit for wait in waits)
        known = [record for wait in waits for record in self._followed.get(wait, ()) if record.units == units]
        if any(how == "refused" or record.stands for record in known):
            return False
        self.by_how[how] += 1
        if how in ("confirmed", "observed_standing"):
            self.signal_s_max = max(self.signal_s_max, now - max(wait.since for wait in waits))
        record = _Followed(units, len(waits))
        for wait in waits:
            self._followed.setdefault(wait, []).append(record)
        return True

    def ended(self, wait: OpenWait, now: float) -> None:
        """A wait is over; of a knot or not."""
        self.wait_s_max = max(self.wait_s_max, now - wait.since)
        for record in self._followed.pop(wait, ()):
            record.open -= 1
            record.stands = False
            record.late = record.late or now >= wait.deadline
            if not record.open and record.late:
                self.late += 1
            elif not record.open:
                self.resolved += 1
