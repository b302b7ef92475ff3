"""Who waits for an agent, and who is next.

Decides the order of waiting calls. Rules (DESIGN 4.3):

- Higher priority first (0 to 9), first come first served within a priority.
- A caller that takes over the place of another one of the same work stands where that one stood: places are numbers
  that grow, and order within a priority is by place.
- A call that avoids an instance is passed over when that instance looks for work, unless it is the only one there is,
  or the call has waited long enough for another (`core.slots`).
- A call whose exclusive key is held is passed over, whoever looks for work.
- The one that has to go when a more urgent call needs room is the newest of the lowest priority.

How it works. One row a priority, in order of place: head, tail and removal cost the same however many wait. Only a
place taken over may have to be put in order by hand. Passing over is a walk; it is bounded by the bound of the queue,
and in practice short: an instance that many avoid is ejected, and few wait for one key.

Not covered: how many may wait and for how long (`core.agent_slots`, `core.slots`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from agentgate.core.exclusive import ExclusiveKeys
from agentgate.core.instances import SlotTicket
from agentgate.model import Call

PRIORITIES: Final = 10


def priority_of(call: Call) -> int:
    """Its priority, brought within 0 to 9."""
    return min(max(call.priority, 0), PRIORITIES - 1)


class AgentQueue:
    """Waiting tickets of one agent; `keys` are those that are held there."""

    __slots__ = ("_by_type", "_keys", "_rows", "size")

    def __init__(self, keys: ExclusiveKeys) -> None:
        self._keys = keys
        self._rows: list[OrderedDict[SlotTicket, None]] = [OrderedDict() for _ in range(PRIORITIES)]
        self._by_type: dict[str, int] = {}
        self.size = 0

    def __iter__(self) -> Iterator[SlotTicket]:
        """In the order in which they are served."""
        for row in reversed(self._rows):
            yield from row

    def push(self, ticket: SlotTicket) -> None:
        """Stand in line, at the ticket's place."""
        number = priority_of(ticket.call)
        row = self._rows[number]
        last = next(reversed(row), None)
        row[ticket] = None
        if last is not None and last.place > ticket.place:
            self._rows[number] = OrderedDict.fromkeys(sorted(row, key=lambda waiting: waiting.place))
        task_type = ticket.call.task_type
        self._by_type[task_type] = self._by_type.get(task_type, 0) + 1
        self.size += 1

    def remove(self, ticket: SlotTicket) -> None:
        """Leave the line."""
        del self._rows[priority_of(ticket.call)][ticket]
        task_type = ticket.call.task_type
        if self._by_type[task_type] > 1:
            self._by_type[task_type] -= 1
        else:
            del self._by_type[task_type]
        self.size -= 1

    def head(self) -> SlotTicket | None:
        """The next one that may begin, whoever is free."""
        is_free = self._keys.is_free
        for row in reversed(self._rows):
            for ticket in row:
                if is_free(ticket.call):
                    return ticket
        return None

    def head_for(self, instance: str) -> SlotTicket | None:
        """The next one that may begin and does not avoid this instance."""
        is_free = self._keys.is_free
        return next((ticket for ticket in self if ticket.avoid != instance and is_free(ticket.call)), None)

    def last(self) -> SlotTicket:
        """The newest of the lowest priority; the queue must not be empty."""
        return next(next(reversed(row)) for row in self._rows if row)

    def ahead_of(self, call: Call) -> int:
        """How many stand before a newcomer of the call's priority."""
        return sum(len(row) for row in self._rows[priority_of(call) :])

    def of_type(self, task_type: str | None) -> list[SlotTicket]:
        """Those waiting with this task type; all of them without one."""
        if task_type is not None and task_type not in self._by_type:
            return []
        return [ticket for ticket in self if task_type is None or ticket.call.task_type == task_type]

    def count(self, task_type: str | None) -> int:
        """How many `of_type` would name."""
        return self.size if task_type is None else self._by_type.get(task_type, 0)
