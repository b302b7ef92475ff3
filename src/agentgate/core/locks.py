"""Locks: who may work on something alone, for how long, and who is next.

Decides, for a request that names one lock or several, between all of them now, a wait, and a refusal. Rules (DESIGN
4.4, REQUIREMENTS D4 to D6, D8):

- **One global order.** Names are taken in the order of their text, however they were written (`core.lock`). A unit
  that holds a lock may ask for further ones only behind it in this order, one request at a time; anything else is
  `bad_request` (`core.lock_order`). So locks alone never make a circle: everybody waits for somebody further along.
- **Nobody waits for ever.** A time-out always holds; the one that was asked for, or the default, is spread by 15 %
  either way, so that two sides do not come back in step. Who gives up gives back what it kept.
- **Leases.** A grant holds until it is given back, its unit has ended (a message's) or its process has gone, and no
  longer than its lease: signs of life of the process renew it. A unit that was told to stop and did not is not renewed
  any more. A lease that ends is *lost*: the names are others', and its unit's later writes are `lease_lost`.
- **Epochs.** Every grant gets a number that is higher than all before it, over restarts as well, because it begins with
  the epoch of the gate. Whoever is written to can refuse what carries a lower one than it has seen.
- **After a restart** locks live in their holders' memory only. Until `opens_at` nothing is granted, and holders claim
  again what they hold, under their old epoch; of two that claim the same, the higher epoch is right.

How it works. A lock is known while an open request names it, so names from outside cost nothing once they are free.
Leases all last equally long: kept in the order in which they were renewed, the first to end stands first. What changes
by itself is news, which `tick` hands out.

Not covered: whether a unit is open, who is told, and circles that go through calls (the wait graph asks `groups`).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from agentgate.core.alarms import Alarms
from agentgate.core.keys import name_flaw
from agentgate.core.lock import Lock, LockTicket, go_together
from agentgate.core.lock_order import order_flaw, shown
from agentgate.core.ranges import require
from agentgate.model import Problem, problem, qualified, tenant_of

K = TypeVar("K")
V = TypeVar("V")

AGAIN_S: Final = 1.0  # locks are short: after a second there is room
EPOCH_BITS: Final = 28  # 268 million grants in one life of a gate, and 33 million lives below 2 ** 53, JSON's limit


@dataclass(frozen=True, kw_only=True, slots=True)
class LockOptions:
    """Times and bounds of locks.

    - `lease_s`, 30: DESIGN 8; longer than a process may be silent before it is given up, so an honest holder keeps it.
    - `wait_s`, 10: for a request without a time-out: several holders' ordinary work, a third of a root call's deadline.
    - `spread`, 0.15: REQUIREMENTS D5.
    - `names_max`, 16, of one request: who needs more wants a coarser lock.
    - `locks_max`, 20 000, known at once, half of them of one tenant: one for each piece of work that its 1 000 agents
      have in hand, and another tenant still finds room.
    - `askers_max`, 1 000, who hold or wait for one lock: as long as the queue of an agent.
    - `process_max`, 1 000, names that one process holds and waits for: all its units, with several each.
    """

    lease_s: float = 30.0
    wait_s: float = 10.0
    spread: float = 0.15
    names_max: int = 16
    locks_max: int = 20_000
    askers_max: int = 1_000
    process_max: int = 1_000

    def __post_init__(self) -> None:
        require(self, "lease_s", "wait_s", low=0.001, high=86_400.0)
        require(self, "spread", high=0.5)
        require(self, "names_max", "askers_max", "process_max", low=1)
        require(self, "locks_max", low=2)

    @property
    def tenant_max(self) -> int:
        """How many locks of one tenant are known at once."""
        return self.locks_max // 2


class LockNews(NamedTuple):
    """A request that waits no longer (granted, refused with a problem, or given up), or one that was lost."""

    ticket: LockTicket
    problem: Problem | None = None


class Locks:
    """All locks of a gate. `epoch` is the gate's own, which grows with every start."""

    def __init__(self, options: LockOptions, draw: Callable[[], float], epoch: int) -> None:
        self.options = options
        self._draw = draw
        self._first_epoch = self._epoch = epoch << EPOCH_BITS
        self._opens_at: float | None = None
        self._locks: dict[str, Lock] = {}
        self._known: Counter[str] = Counter()  # locks, by tenant
        self._processes: dict[str, dict[str, LockTicket]] = {}  # open requests by process and id
        self._wanted: Counter[str] = Counter()  # names in those requests, by process
        self._units: dict[str, dict[LockTicket, None]] = {}
        self._lost: dict[str, str] = {}  # by unit: which names it has lost; as many as there are open units at most
        self._leases: OrderedDict[LockTicket, None] = OrderedDict()  # the first to end first
        self._alarms: Alarms[LockTicket] = Alarms()
        self._news: dict[LockTicket, Problem | None] = {}

    def __iter__(self) -> Iterator[LockTicket]:
        """All open requests; a copy."""
        return iter([ticket for tickets in self._processes.values() for ticket in tickets.values()])

    # --- requests

    def names(self, tenant: str, names: Iterable[str]) -> tuple[str, ...] | Problem:
        """These names, qualified and in the global order; or what is wrong with them."""
        plain = sorted(set(names))
        if not 1 <= len(plain) <= self.options.names_max:
            return _bad(f"a request for locks names 1 to {self.options.names_max} of them, not {len(plain)}")
        flaw = next((flaw for name in plain if (flaw := name_flaw("the name of a lock", name)) is not None), None)
        return _bad(flaw) if flaw is not None else tuple(qualified(tenant, name) for name in plain)

    def time_out_s(self, asked_s: float | None) -> float:
        """How long a request waits, from when it was made: what it asked for, or the default, spread."""
        spread = self.options.spread
        return (self.options.wait_s if asked_s is None else asked_s) * (1.0 - spread + 2.0 * spread * self._draw())

    def request(self, ticket: LockTicket, now: float) -> Problem | None:
        """Take a request: its `state` says whether it is held or waits. Otherwise the refusal."""
        refusal = self._refusal(ticket) or self._no_room(ticket)
        if refusal is not None:
            return refusal
        self._add(ticket, now)
        self._advance(ticket, now)
        if ticket.waiting and ticket.deadline <= now:
            refusal = self._timed_out(ticket, now)
            self.release(ticket, now)
        elif ticket.waiting:
            self._alarms.add(ticket.deadline, ticket)
        return refusal

    def claim_again(self, ticket: LockTicket, epoch: int, now: float) -> bool:
        """A process says after a restart of the gate that it holds these under this epoch; whether it still does."""
        if self._opens_at is None or not 0 < epoch <= self._first_epoch or self._no_room(ticket) is not None:
            return False
        locks = [self._locks[name] for name in ticket.names if name in self._locks]
        rivals = {other: None for lock in locks for other in lock.has if not go_together(ticket, other)}
        if any(other.epoch >= epoch for other in rivals):
            return False
        for other in rivals:
            self._lapse(other, now)
        self._add(ticket, now)
        for name in ticket.names:
            self._locks[name].keep(ticket)
        ticket.front = len(ticket.names)
        self._grant(ticket, epoch, now)
        return True

    def get(self, process: str, request_id: str) -> LockTicket | None:
        """The open request of this process that has this id."""
        return self._processes.get(process, {}).get(request_id)

    def of_process(self, process: str) -> list[LockTicket]:
        """The open requests of a process."""
        return list(self._processes.get(process, {}).values())

    def release(self, ticket: LockTicket, now: float) -> None:
        """Give back what an open request has, or give it up."""
        waited = ticket.waiting or ticket in self._news
        ticket.move("end")
        if waited:
            self._news[ticket] = None
        self._remove(ticket, now)

    # --- what happens to those who ask

    def renew(self, process: str, now: float) -> None:
        """A sign of life of the process: its leases begin anew."""
        for ticket in self._processes.get(process, {}).values():
            if ticket.state == "held" and ticket.is_renewed:
                ticket.lease_ends_at = now + self.options.lease_s
                self._leases.move_to_end(ticket)

    def overstay(self, unit: str) -> None:
        """The unit was told to stop and did not: its leases end with the time that is left of them."""
        for ticket in self._units.get(unit, ()):
            ticket.is_renewed = ticket.scope == "session"
            for name in ticket.names:
                self._locks[name].changed()

    def end_unit(self, unit: str, now: float) -> bool:
        """The unit has ended: its locks are free, except those held for the session of its process.

        Whether it had any; this is asked at the end of every unit, and few of them have.
        """
        self._lost.pop(unit, None)
        own = self._units.pop(unit, None)
        for ticket in own or ():
            if ticket.scope == "message" or ticket.waiting:
                self.release(ticket, now)
            else:
                ticket.unit = ""
        return own is not None

    def end_process(self, process: str, now: float) -> None:
        """The process is gone, and everything it had with it."""
        for ticket in self.of_process(process):
            self.release(ticket, now)

    def lose(self, unit: str, names: tuple[str, ...]) -> None:
        """The unit says that it holds what it does not hold any more."""
        self._lost[unit] = shown(names)

    def lost_by(self, unit: str) -> Problem | None:
        """Why this unit may write no more: it has lost a lock that it works under."""
        names = self._lost.get(unit)
        if names is None:
            return None
        return problem("lease_lost", detail=f"unit {unit} has lost {names}; others may have changed what it protects")

    # --- time

    def hold_back(self, until: float) -> None:
        """Grant nothing before that time, but to those who claim again what they hold."""
        self._opens_at = until

    def open(self, now: float) -> None:
        """Whoever is to come back has come back: what nobody claimed is free."""
        if self._opens_at is not None:
            self._opens_at = None
            self._serve(list(self._locks), now)

    def tick(self, now: float) -> list[LockNews]:
        """What has become of waits and leases since the last time, by itself or by others' doing."""
        if self._opens_at is not None and self._opens_at <= now:
            self.open(now)
        while self._leases and (first := next(iter(self._leases))).lease_ends_at <= now:
            self._lapse(first, now)
        for ticket in self._alarms.pop_due(now):
            if ticket.waiting:  # not granted by what another one that was due has given back
                refusal = self._timed_out(ticket, now)
                self.release(ticket, now)
                self._news[ticket] = refusal
        news, self._news = self._news, {}
        return [LockNews(ticket, refusal) for ticket, refusal in news.items()]

    def next_deadline(self) -> float | None:
        """When `tick` has to be called next, if nothing else happens."""
        first = next(iter(self._leases), None)
        times = [self._opens_at, self._alarms.next(), first.lease_ends_at if first is not None else None]
        return min((at for at in times if at is not None), default=None)

    # --- questions

    def check(self, name: str, epoch: int) -> bool:
        """Whether this lock (by its qualified name) is held under this epoch now."""
        lock = self._locks.get(name)
        return lock is not None and any(ticket.state == "held" and ticket.epoch == epoch for ticket in lock.has)

    def groups(self, ticket: LockTicket) -> list[tuple[str, ...]]:
        """Whom a waiting request waits for, as the wait graph wants it: the next ones ahead, all of whom must go.

        Nobody: its turn may come by itself. What is held for a session, or by a unit that does not stop, is given back
        by others than its unit, so it is outside.
        """
        if self._opens_at is not None or not ticket.waiting:
            return []
        wanted = ticket.names[ticket.front :]
        ahead = {other: None for name in wanted for other in self._locks[name].turns.before(ticket)}
        return [(other.unit,) for other in ahead]

    def standing(self) -> dict[str, Lock]:
        """Every lock that somebody has or waits for, by its qualified name."""
        return {name: lock for name, lock in sorted(self._locks.items()) if lock.has or lock.line}

    # --- parts

    def _refusal(self, ticket: LockTicket) -> Problem | None:
        if not ticket.unit:
            return None
        flaw = order_flaw(ticket, self._units.get(ticket.unit, ()))
        return self.lost_by(ticket.unit) or (_bad(flaw) if flaw is not None else None)

    def _no_room(self, ticket: LockTicket) -> Problem | None:
        options, known = self.options, self._locks
        full = next((name for name in ticket.names if name in known and known[name].askers >= options.askers_max), None)
        if full is not None:
            return _full(f"{options.askers_max} requests hold or wait for {shown((full,))}, which is the bound")
        new = sum(name not in known for name in ticket.names)
        if new and self._known[tenant_of(ticket.names[0])] + new > options.tenant_max:
            return _full(f"{options.tenant_max} locks are in use, which is the bound of one tenant")
        if len(known) + new > options.locks_max:
            return _full(f"{options.locks_max} locks are in use, which is the bound")
        if self._wanted[ticket.process] + len(ticket.names) > options.process_max:
            return _full(f"one process may hold and wait for {options.process_max} locks")
        return None

    def _timed_out(self, ticket: LockTicket, now: float) -> Problem:
        name = ticket.names[ticket.front]
        why = "nothing is granted until those who held locks before the gate's restart are back"
        first = next(self._locks[name].before(ticket), None)
        if first is not None:
            stands = "has it" if first in self._locks[name].has else "is ahead in line"
            why = f"{first.holder} {stands}, for {now - first.since:.1f} s"
        return problem("deadline_exceeded", detail=f"waited {now - ticket.since:.1f} s for {shown((name,))}: {why}")

    def _add(self, ticket: LockTicket, now: float) -> None:
        ticket.since = now
        self._processes.setdefault(ticket.process, {})[ticket.id] = ticket
        self._wanted[ticket.process] += len(ticket.names)
        if ticket.unit:
            self._units.setdefault(ticket.unit, {})[ticket] = None
        for name in ticket.names:
            lock = self._locks.get(name)
            if lock is None:
                lock = self._locks[name] = Lock()
                self._known[tenant_of(name)] += 1
            lock.askers += 1

    def _advance(self, ticket: LockTicket, now: float) -> None:
        """Keep what is free, in order, up to the first that is not; grant when that was all."""
        while ticket.front < len(ticket.names):
            if not self._locks[ticket.names[ticket.front]].enter(ticket, held_back=self._opens_at is not None):
                return
            ticket.front += 1
        self._epoch += 1
        self._grant(ticket, self._epoch, now)

    def _grant(self, ticket: LockTicket, epoch: int, now: float) -> None:
        ticket.move("grant")
        ticket.epoch = epoch
        ticket.since = now
        ticket.lease_ends_at = now + self.options.lease_s
        self._leases[ticket] = None

    def _lapse(self, ticket: LockTicket, now: float) -> None:
        ticket.move("lapse")
        if ticket.unit:
            self.lose(ticket.unit, ticket.names)
        self._news[ticket] = None
        self._remove(ticket, now)

    def _remove(self, ticket: LockTicket, now: float) -> None:
        self._leases.pop(ticket, None)
        _drop(self._processes, ticket.process, ticket.id)
        _less(self._wanted, ticket.process, len(ticket.names))
        _drop(self._units, ticket.unit, ticket)
        for name in ticket.names:
            lock = self._locks[name]
            lock.leave(ticket)
            lock.askers -= 1
            if not lock.askers:
                del self._locks[name]
                _less(self._known, tenant_of(name), 1)
        self._serve(ticket.names, now)

    def _serve(self, names: Iterable[str], now: float) -> None:
        if self._opens_at is not None:
            return
        for name in names:
            for ticket in self._locks[name].serve() if name in self._locks else ():
                ticket.front += 1
                self._advance(ticket, now)
                if not ticket.waiting:
                    self._news[ticket] = None


def _drop(rows: dict[str, dict[K, V]], row: str, key: K) -> None:
    found = rows.get(row, {})
    found.pop(key, None)
    if not found:
        rows.pop(row, None)


def _less(counts: Counter[str], key: str, by: int) -> None:
    counts[key] -= by
    if not counts[key]:
        del counts[key]


def _bad(detail: str) -> Problem:
    return problem("bad_request", detail=detail)


def _full(detail: str) -> Problem:
    return problem("overloaded", retry_after_s=AGAIN_S, detail=detail)
