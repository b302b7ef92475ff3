"""Who sees everything from outside the platform: what was asked, what ran, what took effect, what was answered.

The platform under test says many things about itself; a witness believes none of them. Scripted agents and clients
report here, and the invariants compare these facts with what the platform claims.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from agentgate.errors import CallFailed
from agentgate.sdk.calling import CallOptions

LINES_SHOWN = 60  # of the log, before the moment of a failure
LINES_MAX = 200_000  # no run writes as much; beyond it the oldest go


class Broken(AssertionError):
    """The platform broke one of its promises; `invariant` is its number in DESIGN 11 (0: it must not raise)."""

    def __init__(self, invariant: int, text: str) -> None:
        super().__init__(f"invariant {invariant}: {text}")
        self.invariant = invariant
        self.text = text


class Key(NamedTuple):
    """An idempotency key as a handler knows it: the target as its caller named it, and the key as shown."""

    named: str
    shown: str


class Effect(NamedTuple):
    """Something a write did to the world."""

    key: Key
    unit: str
    at: float


@dataclass(slots=True, kw_only=True, eq=False)
class Run:
    """One execution of a handler."""

    unit: str
    key: Key
    task_type: str
    body: str
    agent: str
    instance: str
    link: int  # which connection of its process it came in by
    repeatable: bool
    exclusive: str = ""  # the key of which its agent may run one at a time
    write: bool
    asked: int = 0  # a read: the number of the call it is for
    started_at: float
    until: float  # its deadline
    told: Callable[[], bool]  # whether it knows by now that it is to stop
    has_called: bool = False
    ended_at: float | None = None
    end: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class Asked:
    """One call of a client or of a handler, and how it ended for the caller."""

    caller: str
    target: str
    task_type: str
    business_key: str
    action: str
    body: str
    write: bool
    repeatable: bool
    again: bool = False
    clean: bool = False  # a failure of it must leave no effect
    way: tuple[str, ...] = ()  # whom its unit is to call in turn
    takes_s: float = 0.0  # how long its unit is to take; 0: as the seed says
    options: CallOptions = field(default_factory=CallOptions)  # what else it says
    started_at: float
    deadline: float | None  # None: as the gate says
    by_unit: str = ""
    holds_up: bool = True  # its unit stands still until it ends; False: it was only started
    number: int = 0  # counts all calls of a run
    ended_at: float | None = None
    cancelled: bool = False
    value: object = None
    error: CallFailed | None = None

    @property
    def key(self) -> Key:
        """The key this call belongs to."""
        return Key(self.target, f"{self.caller}:{self.task_type}:{self.business_key}:{self.action}")

    @property
    def answered(self) -> bool:
        """Whether the caller got a value or an error."""
        return self.ended_at is not None and not self.cancelled

    @property
    def code(self) -> str:
        """The error's code; empty for a value."""
        return self.error.code if self.error is not None else ""


@dataclass(slots=True, kw_only=True, eq=False)
class Wanted:
    """One request for a lock, from its asking to its being given up or given back."""

    name: str
    by_unit: str
    number: int = 0  # counts with the calls
    started_at: float
    deadline: float  # not before the unit's own
    granted_at: float | None = None
    ended_at: float | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class First:
    """A unit stands still until the first of these calls ends, all of which it has started before."""

    any_of: tuple[Asked, ...]
    by_unit: str
    started_at: float
    ended_at: float | None = None


@dataclass(slots=True)
class _Hooks:
    """Who wants to hear of it at once."""

    effect: list[Callable[[Effect], None]] = field(default_factory=list)
    started: list[Callable[[Run], None]] = field(default_factory=list)
    answered: list[Callable[[Asked], None]] = field(default_factory=list)


class Witness:
    """The facts of one run, and its log."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.effects: list[Effect] = []
        self.effects_by_key: dict[Key, list[Effect]] = {}
        self.runs: dict[str, Run] = {}
        self.runs_by_key: dict[Key, list[Run]] = {}
        self.live_runs: dict[str, Run] = {}
        self.news: dict[object, str] = {}  # the units that said something, and about which order
        self.asked: list[Asked] = []
        self.waiting: dict[int, Asked] = {}  # in order of start
        self.locks: list[Wanted] = []
        self.live_locks: dict[int, Wanted] = {}  # wanted or held, by number
        self.firsts: list[First] = []
        self._numbers = itertools.count(1)
        self.broken: Broken | None = None
        self.hooks = _Hooks()
        self._log: deque[tuple[float, str, str]] = deque(maxlen=LINES_MAX)
        self.stop: Callable[[], object] = lambda: None

    def log(self, who: str, what: str) -> None:
        """One line for one transition, up to the first broken promise."""
        if self.broken is None:
            self._log.append((self.now(), who, what))

    def lines(self, last: int | None = None) -> list[str]:
        """The log, aligned."""
        entries = list(self._log)[-last:] if last else list(self._log)
        width = max((len(who) for _, who, _ in entries), default=0)
        return [f"{at:11.6f}  {who:<{width}}  {what}" for at, who, what in entries]

    def fail(self, invariant: int, text: str) -> None:
        """A promise was broken: the first one counts, and ends the run."""
        if self.broken is None:
            self.log("BROKEN", f"invariant {invariant}: {text}")
            self.broken = Broken(invariant, text)
            self.stop()

    def unit_started(self, run: Run) -> None:
        """A handler begins."""
        self.log(run.instance, f"start {run.unit} {run.key.shown}")
        if run.unit in self.runs:
            self.fail(1, f"unit {run.unit} was started twice, by {self.runs[run.unit].instance} and {run.instance}")
        self.runs[run.unit] = self.live_runs[run.unit] = run
        self.runs_by_key.setdefault(run.key, []).append(run)
        for hook in self.hooks.started:
            hook(run)

    def unit_ended(self, run: Run, end: str) -> None:
        """A handler is over, in whatever way."""
        run.ended_at = self.now()
        run.end = end
        self.live_runs.pop(run.unit, None)
        self.log(run.instance, f"end   {run.unit} {end}")

    def took_effect(self, run: Run) -> None:
        """A write did to the world what it is for."""
        effect = Effect(run.key, run.unit, self.now())
        self.effects.append(effect)
        self.effects_by_key.setdefault(run.key, []).append(effect)
        self.log(run.instance, f"EFFECT {run.unit} {run.key.shown}")
        for hook in self.hooks.effect:
            hook(effect)

    def news_told(self, unit: str, order: str) -> None:
        """A unit says something about its order."""
        self.news[unit] = order

    def news_heard(self, unit: str, order: str, teller: object) -> None:
        """A unit has waited for such news, and got those of another."""
        self.log(unit, f"has heard of {teller}")
        if self.news.get(teller) != order:
            self.fail(0, f"{unit} has heard of {teller}, which said nothing about {order}")

    def call_started(self, asked: Asked) -> Asked:
        """Somebody calls."""
        self.asked.append(asked)
        asked.number = next(self._numbers)
        self.waiting[id(asked)] = asked
        if (run := self.live_runs.get(asked.by_unit)) is not None:
            run.has_called = True
        again = " again" if asked.again else ""
        self.log(asked.caller, f"call  {asked.target} {asked.key.shown} {asked.body}{again}")
        return asked

    @contextmanager
    def stands_still(self, unit: str, any_of: Iterable[Asked]) -> Iterator[None]:
        """A handler waits for the first of several calls meanwhile."""
        first = First(any_of=tuple(any_of), by_unit=unit, started_at=self.now())
        self.firsts.append(first)
        try:
            yield
        finally:
            first.ended_at = self.now()

    def lock_wanted(self, name: str, run: Run) -> Wanted:
        """A handler asks for a lock."""
        wanted = Wanted(
            name=name, by_unit=run.unit, number=next(self._numbers), started_at=self.now(), deadline=run.until
        )
        self.locks.append(wanted)
        self.live_locks[wanted.number] = wanted
        run.has_called = True
        self.log(run.instance, f"lock  {run.unit} wants {name}")
        return wanted

    def lock_granted(self, wanted: Wanted) -> None:
        """It holds it."""
        wanted.granted_at = self.now()
        self.log("", f"lock  {wanted.by_unit} has {wanted.name}")

    def lock_ended(self, wanted: Wanted, how: str) -> None:
        """It has given it back, or did not get it."""
        wanted.ended_at = self.now()
        del self.live_locks[wanted.number]
        self.log("", f"lock  {wanted.by_unit} {how} {wanted.name}")

    def call_ended(self, asked: Asked) -> None:
        """The caller has its answer, or left."""
        asked.ended_at = self.now()
        self.waiting.pop(id(asked), None)
        end = "left" if asked.cancelled else (asked.code or f"= {asked.value}")
        self.log(asked.caller, f"ended {asked.target} {asked.key.shown} {end}")
        for hook in self.hooks.answered:
            hook(asked)
