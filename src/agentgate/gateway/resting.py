"""Which open units wait for something: while they do, their slots are for others (DESIGN 4.3).

Whoever lets a unit wait says so with `began` and `ended`, in pairs and in any order. The first wait lets the unit rest,
the end of the last one lets it go on. A unit whose handler holds a thread keeps its slot, whatever it waits for.

That a unit waits for a call it has made is taken for granted. One that does something else meanwhile is over the limit
by that; it is async, so it takes turns with the others of its process.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgate.core.slots import Slots
    from agentgate.gateway.parking import Parking
    from agentgate.gateway.units import Units
    from agentgate.ports.clock import Clock


class Resting:
    """Counts the open waits of each unit; as many as there are calls and other waits under way."""

    def __init__(self, units: Units, slots: Slots, parking: Parking, clock: Clock) -> None:
        self._units = units
        self._slots = slots
        self._parking = parking
        self._clock = clock
        # By the unit's id: a wait may outlast its unit, and a unit that was given up and comes back is another object.
        self._waits: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many units wait."""
        return len(self._waits)

    def began(self, unit_id: str) -> None:
        """The unit waits for one thing more; who waits for its slot may have it."""
        self._waits[unit_id] += 1
        unit = self._units.get(unit_id)
        # Not only at the first wait: a unit that came back counts again, though an earlier wait of it is still open.
        if unit is not None and unit.rests and unit.slot is not None:
            self._slots.rest(unit.slot, self._clock.now())
            self._parking.pump()

    def ended(self, unit_id: str) -> None:
        """One wait is over; after the last one the unit counts again."""
        self._waits[unit_id] -= 1
        if self._waits[unit_id]:
            return
        del self._waits[unit_id]
        unit = self._units.get(unit_id)
        if unit is not None and unit.slot is not None:
            self._slots.resume(unit.slot, self._clock.now())
