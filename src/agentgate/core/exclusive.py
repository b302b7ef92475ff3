"""Exclusive keys: at one agent, work on one object runs one after the other.

Decides whether a call may begin beside what its agent does already. Rules (DESIGN 4.3):

- A skill that is declared `exclusive="business_key"` takes its business key for as long as its unit runs, whatever
  the action and the caller. All such skills of an agent share their keys: what is protected is the object.
- A key is held until its unit has ended: beyond the call, beyond the slot when the unit does not stop (a zombie), and
  from the gate's start on for a unit that an earlier gate had running.
- Who waits for a key is passed over in the queue and holds nobody else up.
- A unit that is found running counts, also beside another one of the same key; then the key is free when both ended.

How it works. A count of holders a key; a key that nobody holds is not in it. So it is as large as what runs.

Not covered: work on one object at several agents (a lock is for that), and who is next (`core.queue`).
"""

from __future__ import annotations

from agentgate.model import Call


class ExclusiveKeys:
    """The keys that are held at one agent."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def is_free(self, call: Call) -> bool:
        """Whether nothing runs that the call may not run beside."""
        return not call.exclusive or call.exclusive not in self._holders

    def take(self, key: str) -> None:
        """One more holder."""
        self._holders[key] = self._holders.get(key, 0) + 1

    def release(self, key: str) -> None:
        """One holder fewer."""
        left = self._holders[key] - 1
        if left:
            self._holders[key] = left
        else:
            del self._holders[key]
