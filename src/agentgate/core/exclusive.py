"""Exclusive keys: at one agent, work on one object runs one after the other.

Decides whether a call may begin beside what its agent does already. Rules (DESIGN 4.3):

- A skill that is declared `exclusive="business_key"` takes its business key for as long as its unit runs, whatever
  the action and the caller. All such skills of an agent share their keys: what is protected is the object.
- A key is held until its unit has ended: beyond the call, beyond the slot when the unit does not stop (a zombie), and
  from the gate's start on for a unit that an earlier gate had running.
- Who waits for a key is passed over in the queue and holds nobody else up.
- A unit that is found running counts, also beside another one of the same key; then the key is free when both ended.
- A unit that waits keeps its key: the object is in the middle of something.

How it works. The holders of each key; a key that nobody holds is not in it. So it is as large as what runs.

Not covered: work on one object at several agents (a lock is for that), and who is next (`core.queue`).
"""

from __future__ import annotations

from typing import Protocol

from agentgate.model import Call


class KeyHolder(Protocol):
    """Who holds a key; `unit` is empty while it is not known which unit that is."""

    unit: str


class ExclusiveKeys:
    """The keys that are held at one agent."""

    __slots__ = ("_holders",)

    def __init__(self) -> None:
        self._holders: dict[str, list[KeyHolder]] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def is_free(self, call: Call) -> bool:
        """Whether nothing runs that the call may not run beside."""
        return not call.exclusive or call.exclusive not in self._holders

    def unit_holding(self, call: Call) -> str | None:
        """A unit that has to end before the call may begin; None when there is none, or none is known."""
        return next((holder.unit for holder in self._holders.get(call.exclusive, ()) if holder.unit), None)

    def take(self, key: str, holder: KeyHolder) -> None:
        """One more holder."""
        self._holders.setdefault(key, []).append(holder)

    def release(self, key: str, holder: KeyHolder) -> None:
        """One holder fewer."""
        holders = self._holders[key]
        holders.remove(holder)
        if not holders:
            del self._holders[key]
