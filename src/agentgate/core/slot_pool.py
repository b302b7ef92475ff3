"""The slots of one agent, as those see them who wait for one: which units have to end, or rest, before one is free.

Decides on whom a waiting call depends, for the wait graph (DESIGN 4.4). Rules:

- Any of the holders is enough: a slot of any instance will do, after a moment also of one that a retry avoids.
- Nobody is named when there is room, when no instance is here, or when it cannot be known: a slot is held by a call
  whose unit has not begun, or an instance is away, expected after a restart, or out with nothing in hand, and may take
  calls by the passing of time.
- When an instance runs as many units as it may, those that run are named: one of them has to end, or to rest. When only
  too many are open, resting ones are named as well: one has to end. An instance that is out or on trial takes one call
  when nothing of what it has in hand is open any more.

How it works. Nothing is kept: the answer is read off the instances every time it is asked for. An instance that is over
its limit needs more than one of its units to end; that one of them can is still necessary, so nobody is named in vain.

Not covered: exclusive keys (`core.exclusive`), and who else stands in the queue.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from agentgate.core.instances import Instance


class SlotPool:
    """A view of an agent's instances; equal to itself only."""

    __slots__ = ("_expected", "_instances")

    def __init__(self, instances: Mapping[str, Instance], expected: Collection[str] = ()) -> None:
        self._instances = instances
        self._expected = expected

    def holders(self) -> Sequence[str] | None:
        """The units of which one has to end or rest; None: there is room, or it cannot be known."""
        able = [item for item in self._instances.values() if item.phase in ("here", "away")]
        if not able or self._expected or any(item.phase == "away" or item.may_take for item in able):
            return None
        units = [ticket.unit for item in able for ticket in item.in_the_way()]
        return units if all(units) else None


NO_POOL: Final = SlotPool({})  # of an agent that is not known
