r"""One lock: whose it is, who stands in line for it, and the life of a request for locks.

Decides whether a request may have this lock now. Rules (DESIGN 4.4, REQUIREMENTS D6):

- *Exclusive* goes with nobody, *shared* with shared ones.
- First come, first served. Who does not fit stands in line, and whoever comes after stands behind it, also when it
  would fit: an exclusive request is never overtaken by a stream of shared ones.

A request may name several locks. It goes through them in the one global order of their names: what is free it keeps,
at the first that is not it stands in line, and only when all are its own it is granted, all at once. So it has no use
of some while it waits for others, and everybody who waits, waits for somebody who is further along the order::

    waiting --grant--> held --lapse--> lost
       |                |
       `-----end--------'----end-----> ended

- `waiting`: it keeps the first `front` of its names and stands in line for the next.
- `held`: all its names are its own, under an epoch, until its lease ends.
- `lost`: its lease ended while it was held. The names are others' now.
- `ended`: given back, or given up while it waited.

How it works. A lock knows who has it (kept or held) and its line, both in the order of coming. It lives as long as a
request names it, which `askers` counts. The wait graph is told of a request only who is next ahead of it (`Turns`):
those wait for who was before them, so a line has as many edges as requests, not as pairs. That is worked out for the
whole line when somebody looks, and again after the lock has changed.

Not covered: which locks there are, leases and bounds (`core.locks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, Literal

from msgspec import Struct

from agentgate.core.table import step
from agentgate.model import LockMode, LockScope

LockState = Literal["waiting", "held", "lost", "ended"]
LockEvent = Literal["grant", "lapse", "end"]

TABLE: Final[dict[tuple[LockState, LockEvent], LockState]] = {
    ("waiting", "grant"): "held",
    ("waiting", "end"): "ended",
    ("held", "lapse"): "lost",
    ("held", "end"): "ended",
}


class LockTicket(Struct, eq=False, kw_only=True):
    """One request for locks, from its coming to its end; times in monotonic seconds.

    `names` are qualified, without repetition and in the global order. `process` is whose signs of life renew the lease,
    `unit` the one it was asked for in; empty outside of any, and once that has ended.
    """

    id: str  # of the request; unique within its process
    names: tuple[str, ...]
    process: str
    mode: LockMode = "exclusive"
    scope: LockScope = "message"
    unit: str = ""
    owner: str = ""  # the agent or client, as people know it
    work: str = ""  # what its unit is about, as people know it: `task_type(business_key)`
    deadline: float = inf  # until when it waits
    since: float = 0.0  # since when it waits or is held
    state: LockState = "waiting"
    front: int = 0  # how many of its names it keeps
    epoch: int = 0
    lease_ends_at: float = inf
    is_renewed: bool = True  # by signs of life; a unit that was told to stop and did not loses its lease

    @property
    def waiting(self) -> bool:
        """Whether its deadline still matters (`core.alarms`)."""
        return self.state == "waiting"

    @property
    def holder(self) -> str:
        """Who asks, as people know it: the agent and its work, with the unit's id; outside of any, its name alone."""
        return f"{self.owner}.{self.work} (unit {self.unit})" if self.unit else self.owner

    @property
    def is_bound(self) -> bool:
        """Whether the end of its unit is what gives it back: not for a session's, nor when its unit does not stop."""
        return self.unit != "" and self.scope == "message" and self.is_renewed

    @property
    def kept(self) -> tuple[str, ...]:
        """The names that nobody else can have."""
        return self.names[: self.front]

    def move(self, event: LockEvent) -> None:
        """One step along the table."""
        self.state = step(TABLE, self.state, event)


def go_together(one: LockTicket, other: LockTicket) -> bool:
    """Whether both may have the same lock."""
    return one.mode == other.mode == "shared"


class Turns:
    """Who is next ahead of whom at one lock, as it stands: the fewest bound requests that have all others behind them.

    Requests that are not bound are passed over: nobody knows when they go, but whoever is before them must go as well.
    """

    __slots__ = ("_before_exclusive", "_before_shared", "_next")

    def __init__(self, has: Sequence[LockTicket], line: Sequence[LockTicket]) -> None:
        self._before_exclusive = [ticket for ticket in has if ticket.is_bound]
        self._before_shared = [ticket for ticket in self._before_exclusive if ticket.mode == "exclusive"]
        self._next: dict[LockTicket, tuple[list[LockTicket], int]] = {}  # a row, and how much of it was there
        for ticket in line:
            ahead = self._last(ticket)
            self._next[ticket] = ahead, len(ahead)
            if ticket.is_bound:
                self._add(ticket)

    def before(self, ticket: LockTicket) -> list[LockTicket]:
        """Whom this request waits for. One that is not as far yet will stand behind the whole line."""
        if ticket not in self._next:
            return self._last(ticket)
        ahead, count = self._next[ticket]
        return ahead[:count]

    def _last(self, ticket: LockTicket) -> list[LockTicket]:
        return self._before_exclusive if ticket.mode == "exclusive" else self._before_shared

    def _add(self, ticket: LockTicket) -> None:
        if ticket.mode == "exclusive":
            self._before_exclusive = self._before_shared = [ticket]
            return
        passed = self._before_shared
        if self._before_exclusive[:1] == passed[:1]:  # the first of a run: it waits for those that it does not pass
            self._before_exclusive = self._before_exclusive[len(passed) :]
        self._before_exclusive.append(ticket)


class Lock:
    """One lock. `has` and `line` are in the order of coming."""

    __slots__ = ("_turns", "askers", "has", "line")

    def __init__(self) -> None:
        self.askers = 0  # open requests that name it, those included that are not as far yet
        self.has: dict[LockTicket, None] = {}
        self.line: dict[LockTicket, None] = {}
        self._turns: Turns | None = None  # as of the last look, unless the lock has changed since

    @property
    def turns(self) -> Turns:
        """Who is next ahead of whom."""
        if self._turns is None:
            self._turns = Turns([*self.has], [*self.line])
        return self._turns

    def changed(self) -> None:
        """Somebody has come, gone, or is not bound any more."""
        self._turns = None

    def keep(self, ticket: LockTicket) -> None:
        """It is this request's from now on."""
        self.changed()
        self.has[ticket] = None

    def enter(self, ticket: LockTicket, *, held_back: bool) -> bool:
        """Keep the lock for this request, or put it into the line; whether it is kept."""
        if not held_back and not self.line and self._fits(ticket):
            self.keep(ticket)
            return True
        self.changed()
        self.line[ticket] = None
        return False

    def leave(self, ticket: LockTicket) -> None:
        """The request is over, wherever it stood."""
        self.changed()
        self.has.pop(ticket, None)
        self.line.pop(ticket, None)

    def serve(self) -> list[LockTicket]:
        """Take those out of the line whose turn has come; the lock is kept for them from now on."""
        served: list[LockTicket] = []
        for ticket in self.line:
            if not self._fits(ticket):
                break
            self.keep(ticket)
            served.append(ticket)
        for ticket in served:
            del self.line[ticket]
        return served

    def before(self, ticket: LockTicket) -> Iterator[LockTicket]:
        """Who has to go first: those who have it, and those ahead in line, unless they go together with the request.

        A request that is not as far yet will stand behind the whole line.
        """
        for other in self.has:
            if other is not ticket and not go_together(ticket, other):
                yield other
        for other in self.line:
            if other is ticket:
                return
            if not go_together(ticket, other):
                yield other

    def _fits(self, ticket: LockTicket) -> bool:
        return all(go_together(ticket, other) for other in self.has)
