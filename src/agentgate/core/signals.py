"""Signals between units: one says that something has happened, another waits until somebody does (DESIGN 4.4).

What is decided: who gets a signal, how long one that nobody waits for is kept, and how a wait ends.

Rules. A signal has a name and says what it is about; it stays within its tenant. A wait *matches* it by the same name
and object, if the wait names no other agent as its sender (`from_agent`), and the signal no other as its receiver
(`to`).

- **Whoever waits when it comes gets it**, all of them. If nobody does, it is kept for the first matching wait that
  comes, which takes it; of several that are kept, the oldest first. After `keep_s` nobody gets it any more: news that
  old is more likely to be taken for that of another occasion than to be missed. So it does not matter who is first.
- **Once.** A signal that is sent again (the same process, the same id) is taken for received and changes nothing. A
  wait ends once; when it is sent again, over a new connection, it gets the outcome it had. That is remembered until its
  unit has ended, or its process says that it has it.
- A wait ends with the value of a signal; with `needs_human` when its time is over: nobody was too slow here that could
  be asked again, the business did not go on (D10); with `promise_broken` when it names the agent, and all units of that
  agent that had promised the signal about this object have ended without it (`core.promises`), at once if that was a
  moment ago; with its unit; with what `release` says, when the others of a knot could not go on otherwise.
- At a bound the new one is refused with `overloaded`, and what was accepted stays: signals are never forgotten early.

Who may send what somebody waits for is told by `groups`, for the wait graph: the other open units that have promised
it. If none has, it may be anybody, and the wait counts as one for the world outside.

How it works. Open waits and kept signals stand by topic (tenant, name, object); a topic is dropped with the last of
them. Kept signals all live equally long, so they stand in the order of their end. The ids of received signals are
remembered by process, the last `RECENT_MAX` of each: more are not on the way at once when a connection is lost.

Not covered: who may wait or signal at all, and the deadlines of waits (`gateway.signals`). Nothing here is on disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from agentgate.core.bounded import BoundedMap
from agentgate.core.promises import Promise, Promiser, Promises
from agentgate.core.ranges import require
from agentgate.model import Outcome, Problem, failure, problem

SENDERS_MAX: Final = 10_000  # processes whose last signals are remembered: as many as may be connected
RECENT_MAX: Final = 256
STALE_MIN: Final = 64  # so few entries of waits that are over are not worth tidying up

WaitId: TypeAlias = tuple[str, str]  # the process (qualified) and its own id: two processes cannot disturb each other
Topic: TypeAlias = tuple[str, str, str]  # tenant, name, about


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalOptions:
    """How long signals and waits last, and how many there may be.

    - `wait_s`, 60: a wait that states no time. Within a minute somebody notices; a wait is also cut a moment before its
      unit's own deadline, so that the handler can still say what to do.
    - `keep_s`, 600: a signal that nobody waits for. Longer than a call waits in any queue; what comes later belongs to
      another occasion.
    - `promise_grace_s`, 5: after the end of a promising unit that may be followed by another attempt. The gate's
      own retries come within two pauses of about a second, and a queue.
    - `value_bytes_max`, 16 KiB: a signal is news, and may be kept by the thousand; content travels by its id (B10).
    - `waits_per_unit`, 64: waits of one unit that are open, or whose ends are remembered.
    - `kept_per_agent`, 1 000, and `kept_per_tenant`, 10 000: one agent that signals into the void neither fills the
      memory nor takes the room of others.
    """

    wait_s: float = 60.0
    keep_s: float = 600.0
    promise_grace_s: float = 5.0
    value_bytes_max: int = 16_384
    waits_per_unit: int = 64
    kept_per_agent: int = 1_000
    kept_per_tenant: int = 10_000

    def __post_init__(self) -> None:
        require(self, "wait_s", "keep_s", low=0.1, high=86_400.0)
        require(self, "promise_grace_s", high=3_600.0)
        require(self, "value_bytes_max", "waits_per_unit", "kept_per_agent", "kept_per_tenant", low=1)


class Signal(Struct, frozen=True, kw_only=True):
    """Something has happened. `instance` and `id` are its process and its own id; agents by their plain names."""

    instance: str
    id: str
    unit: str
    tenant: str
    agent: str
    name: str
    about: str
    value: Any = None
    to: str = ""

    @property
    def topic(self) -> Topic:
        """What those who wait for it look under."""
        return self.tenant, self.name, self.about


class SignalWait(Struct, eq=False, kw_only=True):
    """A unit waits until somebody says `name` about an object. Times are monotonic seconds."""

    id: WaitId
    unit: str
    tenant: str
    agent: str
    name: str
    about: str
    from_agent: str
    since: float
    deadline: float
    outcome: Outcome | None = None  # None: it is open

    @property
    def topic(self) -> Topic:
        """Where signals for it come in."""
        return self.tenant, self.name, self.about

    def matches(self, signal: Signal) -> bool:
        """Whether a signal of its topic is one for it."""
        return self.from_agent in ("", signal.agent) and signal.to in ("", self.agent)


class _Kept(Struct, eq=False):
    signal: Signal
    until: float


class Received(NamedTuple):
    """What became of a signal: `error`, or the waits that it has ended."""

    error: Problem | None = None
    ended: Sequence[SignalWait] = ()


class SignalBook:
    """All open waits, kept signals and promises."""

    def __init__(self, options: SignalOptions) -> None:
        self._options = options
        self._promises = Promises(options.promise_grace_s)
        self._waits: dict[WaitId, SignalWait] = {}  # of open units, ended ones too
        self._of_unit: dict[str, dict[WaitId, SignalWait]] = {}  # the oldest first
        self._open: dict[Topic, dict[WaitId, SignalWait]] = {}
        self._open_count = 0
        self._deadlines: list[tuple[float, int, SignalWait]] = []
        self._numbers = count()  # tell equal deadlines apart
        self._kept: dict[Topic, dict[_Kept, None]] = {}
        self._ages: dict[_Kept, None] = {}  # the oldest first
        self._kept_by: Counter[tuple[str, ...]] = Counter()  # by tenant, and by tenant and agent
        self._recent: BoundedMap[str, dict[str, None]] = BoundedMap(SENDERS_MAX)
        self.expired = 0  # signals that nobody came for

    @property
    def kept(self) -> int:
        """How many signals wait for somebody."""
        return len(self._ages)

    @property
    def waiting(self) -> int:
        """How many waits are open."""
        return self._open_count

    def open_waits(self) -> list[SignalWait]:
        """For display: the open waits."""
        return [wait for waits in self._open.values() for wait in waits.values()]

    def of_unit(self, unit: str) -> list[SignalWait]:
        """The waits of a unit that are known, ended ones too; the oldest first."""
        return list(self._of_unit.get(unit, {}).values())

    def get(self, wait_id: WaitId) -> SignalWait | None:
        """A wait that is known, open or not."""
        return self._waits.get(wait_id)

    def concerns(self, unit: str) -> bool:
        """Whether anything changes here when this unit ends."""
        return unit in self._of_unit or unit in self._promises

    # Waits

    def wait(self, wait: SignalWait, now: float) -> Problem | None:
        """A unit waits from now on, or has what it waits for (`wait.outcome`). The answer is why it must not wait."""
        assert wait.id not in self._waits, "a wait that is known is not made anew"
        if not self._has_room(wait.unit):
            limit = self._options.waits_per_unit
            return problem("overloaded", detail=f"unit {wait.unit} waits for {limit} signals, which is the bound")
        self._waits[wait.id] = wait
        self._of_unit.setdefault(wait.unit, {})[wait.id] = wait
        kept = self._kept_for(wait, now)
        if kept is not None:
            self._drop_kept(kept)
            wait.outcome = Outcome(value=kept.signal.value)
            return None
        promise = Promise(wait.tenant, wait.from_agent, wait.name, wait.about)
        if self._promises.is_broken(promise, now):
            wait.outcome = _without_it(promise)
            return None
        self._open.setdefault(wait.topic, {})[wait.id] = wait
        self._open_count += 1
        if len(self._deadlines) > 2 * self._open_count + STALE_MIN:
            self._deadlines = [entry for entry in self._deadlines if entry[2].outcome is None]
            heapify(self._deadlines)
        heappush(self._deadlines, (wait.deadline, next(self._numbers), wait))
        return None

    def forget(self, wait_id: WaitId) -> SignalWait | None:
        """Nobody is interested in this wait any more; the answer is the wait, if it was open."""
        wait = self._waits.pop(wait_id, None)
        if wait is None:
            return None
        waits = self._of_unit[wait.unit]
        del waits[wait_id]
        if not waits:
            del self._of_unit[wait.unit]
        if wait.outcome is not None:
            return None
        return self._end(wait, failure("cancelled", sent=True))

    def release(self, wait_id: WaitId, error: Problem) -> SignalWait | None:
        """End a wait with this instead of a signal; the answer is the wait, if it was open."""
        wait = self._waits.get(wait_id)
        if wait is None or wait.outcome is not None:
            return None
        return self._end(wait, Outcome(error=error))

    def groups(self, wait: SignalWait) -> Sequence[tuple[str, ...]]:
        """For the wait graph: the other units of which one may send it; () when that may be anybody, or it is over."""
        if wait.outcome is not None:
            return ()
        candidates = self._promises.candidates(wait.tenant, wait.name, wait.about, wait.from_agent)
        found = tuple(unit for unit in candidates if unit != wait.unit)
        return (found,) if found else ()

    # Signals

    def knows(self, instance: str, signal_id: str) -> bool:
        """Whether this signal has been received before."""
        recent = self._recent.get(instance)
        return recent is not None and signal_id in recent

    def signal(self, signal: Signal, now: float) -> Received:
        """Something has happened: give it to all who wait for it, or keep it."""
        assert not self.knows(signal.instance, signal.id), "a signal that is known is not given out again"
        receivers = [wait for wait in self._open.get(signal.topic, {}).values() if wait.matches(signal)]
        if not receivers:
            self._expire_kept(now)
            error = self._no_room(signal, now)
            if error is not None:
                return Received(error)
            self._keep(signal, now)
        self._note(signal)
        self._promises.sent(signal.unit, signal.name, signal.about)
        return Received(None, [self._end(wait, Outcome(value=signal.value)) for wait in receivers])

    # Units

    def unit_opened(self, promiser: Promiser) -> None:
        """A unit runs that has promised signals."""
        self._promises.opened(promiser)

    def unit_ended(self, unit: str, now: float, *, final: bool) -> list[SignalWait]:
        """A unit has ended: its own waits end with it, and so do those for what it had promised, if `final`."""
        ended = [self._end(wait, _closed(unit)) for wait in self.of_unit(unit) if wait.outcome is None]
        for wait_id in self._of_unit.pop(unit, ()):
            del self._waits[wait_id]
        return ended + self._broken(self._promises.ended(unit, now, final=final))

    # Time

    def tick(self, now: float) -> list[SignalWait]:
        """The waits that end because time has passed; signals that nobody came for are forgotten."""
        self._expire_kept(now)
        self._recent.sweep(now, self._options.keep_s)
        ended = self._broken(self._promises.tick(now))
        while self._deadlines and self._is_due(now):
            wait = heappop(self._deadlines)[2]
            if wait.outcome is None:
                ended.append(self._end(wait, self._in_vain(wait)))
        return ended

    def next_deadline(self) -> float | None:
        """When `tick` has something to do, if nothing else happens."""
        while self._deadlines and self._deadlines[0][2].outcome is not None:
            heappop(self._deadlines)
        dues = [self._deadlines[0][0]] if self._deadlines else []
        dues += [due for due in (self._promises.next_deadline(),) if due is not None]
        dues += [kept.until for kept in (next(iter(self._ages), None),) if kept is not None]
        return min(dues, default=None)

    # Parts

    def _is_due(self, now: float) -> bool:
        deadline, _, wait = self._deadlines[0]
        return deadline <= now or wait.outcome is not None

    def _has_room(self, unit: str) -> bool:
        waits = self._of_unit.get(unit, {})
        if len(waits) < self._options.waits_per_unit:
            return True
        ended = next((wait for wait in waits.values() if wait.outcome is not None), None)
        if ended is not None:
            self.forget(ended.id)
        return ended is not None

    def _end(self, wait: SignalWait, outcome: Outcome) -> SignalWait:
        wait.outcome = outcome
        waits = self._open[wait.topic]
        del waits[wait.id]
        if not waits:
            del self._open[wait.topic]
        self._open_count -= 1
        return wait

    def _broken(self, promises: Sequence[Promise]) -> list[SignalWait]:
        ended: list[SignalWait] = []
        for promise in promises:
            waits = list(self._open.get((promise.tenant, promise.name, promise.about), {}).values())
            ended += [self._end(wait, _without_it(promise)) for wait in waits if wait.from_agent == promise.agent]
        return ended

    def _in_vain(self, wait: SignalWait) -> Outcome:
        who = wait.from_agent or "nobody"
        did = "did not say" if wait.from_agent else "said"
        about = f" about {wait.about!r}" if wait.about else ""
        detail = f"{who} {did} `{wait.name}`{about} within {wait.deadline - wait.since:.3g} s"
        return failure("needs_human", sent=True, detail=detail)

    def _kept_for(self, wait: SignalWait, now: float) -> _Kept | None:
        self._expire_kept(now)
        return next((kept for kept in self._kept.get(wait.topic, ()) if wait.matches(kept.signal)), None)

    def _no_room(self, signal: Signal, now: float) -> Problem | None:
        options = self._options
        bounds = {_agent_of(signal): options.kept_per_agent, _tenant_of(signal): options.kept_per_tenant}
        for owner, limit in bounds.items():
            if self._kept_by[owner] >= limit:
                # The oldest of all may be another's: it is then soonest worth a try, and no promise.
                wait_s = next(iter(self._ages)).until - now
                detail = f"{limit} signals of {owner[-1]} are kept that nobody has waited for, which is the bound"
                return problem("overloaded", retry_after_s=wait_s, detail=detail)
        return None

    def _note(self, signal: Signal) -> None:
        recent = self._recent.peek(signal.instance)
        if recent is None:
            recent = self._recent[signal.instance] = {}
        elif len(recent) >= RECENT_MAX:
            del recent[next(iter(recent))]
        recent[signal.id] = None

    def _keep(self, signal: Signal, now: float) -> None:
        kept = _Kept(signal, now + self._options.keep_s)
        self._kept.setdefault(signal.topic, {})[kept] = None
        self._ages[kept] = None
        self._kept_by.update((_tenant_of(signal), _agent_of(signal)))

    def _drop_kept(self, kept: _Kept) -> None:
        del self._ages[kept]
        signal = kept.signal
        row = self._kept[signal.topic]
        del row[kept]
        if not row:
            del self._kept[signal.topic]
        for owner in (_tenant_of(signal), _agent_of(signal)):
            self._kept_by[owner] -= 1
            if not self._kept_by[owner]:
                del self._kept_by[owner]

    def _expire_kept(self, now: float) -> None:
        while self._ages:
            oldest = next(iter(self._ages))
            if oldest.until > now:
                return
            self._drop_kept(oldest)
            self.expired += 1


def _tenant_of(signal: Signal) -> tuple[str, ...]:
    return (signal.tenant,)


def _agent_of(signal: Signal) -> tuple[str, ...]:
    return (signal.tenant, signal.agent)


def _without_it(promise: Promise) -> Outcome:
    detail = f"{promise.agent} has ended its work on {promise.about!r} without saying `{promise.name}`"
    return failure("promise_broken", sent=True, detail=detail)


def _closed(unit: str) -> Outcome:
    return failure("lease_lost", sent=True, detail=f"unit {unit} has ended")
