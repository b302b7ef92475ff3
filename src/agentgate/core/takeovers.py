"""Processes under one instance name: each takes the connection of the other over, and neither notices.

What is noticed: connections of one instance are taken over again and again while they still stand, or registrations by
HTTP are replaced by those of other endpoints. A name is one process's; a process that connects anew takes over what its
last connection left. Rules:

- A takeover of a connection that nobody saw break counts. Once in a while, a network broke on one side only.
- `TAKEOVERS_MIN` of them within `WINDOW_S` are no accident. Every further one within that time says so again.
- Who takes over a connection is shown by its process id, as far as it said one. It decides nothing: processes in
  containers often have the same. An endpoint does decide: only one that comes back is that of a process that was there
  all the while; a program that is started again and again at ever new ports is none.

How it works. The last takeovers of an instance, with their times, in a bounded map that forgets who was quiet.

Not covered: which of the processes is the right one. Nobody is refused: the one that was there may be the stray.
"""

from __future__ import annotations

from typing import Any, Final, Generic, NamedTuple, TypeVar

from agentgate.core.bounded import BoundedMap

TAKEOVERS_MIN: Final = 3
WINDOW_S: Final = 60.0
SHOWN_MAX: Final = 60  # of one instance; two processes without a pause between their tries would fill any list
INSTANCES_MAX: Final = 1_000


Who = TypeVar("Who", bound=int | str)  # a process id, or an endpoint


class Sharing(NamedTuple, Generic[Who]):
    """A name that several processes have: how often it was taken over within the window, and by whom, as they came."""

    takeovers: int
    by: list[Who]

    @property
    def is_alternating(self) -> bool:
        """Whether somebody has come back."""
        return len(self.by) < self.takeovers

    def evidence(self, who: str) -> dict[str, Any]:
        """As a finding shows it; `who` is what they are."""
        return {"takeovers": self.takeovers, who: self.by}


class Takeovers(Generic[Who]):
    """The takeovers of all instances."""

    def __init__(self) -> None:
        self._seen: BoundedMap[str, tuple[tuple[float, Who], ...]] = BoundedMap(INSTANCES_MAX)

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, instance: str, who: Who, now: float) -> Sharing[Who] | None:
        """`who` (0 or empty: it does not say) has taken over what still stands; whether that is one too many."""
        self._seen.sweep(now, WINDOW_S)
        recent = [one for one in self._seen.get(instance, ()) if now - one[0] < WINDOW_S]
        recent = [*recent, (now, who)][-SHOWN_MAX:]
        self._seen[instance] = tuple(recent)
        if len(recent) < TAKEOVERS_MIN:
            return None
        return Sharing(len(recent), list(dict.fromkeys(one for _, one in recent if one)))
