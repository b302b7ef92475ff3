"""Who has promised a signal, and when a promise is broken.

A skill may declare signals that each of its units sends before it ends, about the unit's business key. What is decided:
which open units may still send a signal that somebody waits for, and after which end of a unit nobody will.

Rules. A unit that promises a name is a *candidate* for it from its start until it has sent that signal about its own
business key, or has ended. A promise is *broken* when its unit ends without having sent it, and no other candidate of
the same agent is there for the same name and object. Where the end is final (it has answered, and that is stored), this
is said at once. Any other end (nothing happened, the instance is gone, it was told to stop) may be followed by another
attempt of the gate, so it counts only after `grace_s`, unless another candidate has appeared by then. That a promise is
broken is remembered for `grace_s` and `LATE_S` more, for those who begin to wait only then, unless the same agent
promises it again.

How it works. Candidates stand by tenant and name, then by what they are about. Ends that are not final stand in a row
in the order in which their grace ends, and broken promises in the order in which they are forgotten. All of it is as
large as what runs, and what has ended within `grace_s`; of broken promises `BROKEN_MAX` are remembered.

Not covered: who waits (`core.signals`), and calls that still queue: they have no unit yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct, field

LATE_S: Final = 5.0  # a handler that has just had the answer of the one who promised, and does something else first
BROKEN_MAX: Final = 10_000  # who comes too late for one that is forgotten waits as long as for anybody


class Promise(NamedTuple):
    """That an agent will say `name` about an object. The agent by its plain name within its tenant."""

    tenant: str
    agent: str
    name: str
    about: str


class Promiser(Struct, eq=False):
    """An open unit whose skill promises signals."""

    unit: str
    tenant: str
    agent: str
    about: str
    names: set[str] = field(default_factory=set)  # not sent yet

    def promise(self, name: str) -> Promise:
        """What it has promised under this name."""
        return Promise(self.tenant, self.agent, name, self.about)


class Promises:
    """The promises of all open units."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._units: dict[str, Promiser] = {}
        self._candidates: dict[tuple[str, str], dict[str, dict[str, Promiser]]] = {}  # tenant, name; about; unit
        self._in_grace: deque[tuple[float, Promise]] = deque()
        self._broken: dict[Promise, float] = {}  # until when it is remembered, the soonest first

    def __len__(self) -> int:
        return len(self._units)

    def __contains__(self, unit: str) -> bool:
        return unit in self._units

    def opened(self, promiser: Promiser) -> None:
        """A unit runs, and will send these signals. One that is open already is known by what is said last."""
        self._forget(promiser.unit)
        self._units[promiser.unit] = promiser
        for name in promiser.names:
            by_about = self._candidates.setdefault((promiser.tenant, name), {})
            by_about.setdefault(promiser.about, {})[promiser.unit] = promiser
            self._broken.pop(promiser.promise(name), None)

    def sent(self, unit: str, name: str, about: str) -> None:
        """The unit has sent a signal; if it is one that it has promised, the promise is kept."""
        promiser = self._units.get(unit)
        if promiser is not None and about == promiser.about and name in promiser.names:
            promiser.names.remove(name)
            self._withdraw(promiser, name)

    def ended(self, unit: str, now: float, *, final: bool) -> list[Promise]:
        """The unit has ended; the promises that are broken by that."""
        left = self._forget(unit)
        if not final:
            self._in_grace.extend((now + self._grace_s, promise) for promise in left)
            return []
        return self._break(left, now)

    def tick(self, now: float) -> list[Promise]:
        """The promises whose grace is over and that nobody has taken up."""
        self._forget_broken(now)
        due: list[Promise] = []
        while self._in_grace and self._in_grace[0][0] <= now:
            due.append(self._in_grace.popleft()[1])
        return self._break(due, now)

    def next_deadline(self) -> float | None:
        """When the next grace ends."""
        return self._in_grace[0][0] if self._in_grace else None

    def is_open(self, promise: Promise) -> bool:
        """Whether a unit runs that will keep it."""
        units = self._about(promise.tenant, promise.name, promise.about)
        return any(promiser.agent == promise.agent for promiser in units.values())

    def is_broken(self, promise: Promise, now: float) -> bool:
        """Whether it was broken a moment ago, and nobody has promised it again."""
        self._forget_broken(now)
        return promise in self._broken

    def candidates(self, tenant: str, name: str, about: str, agent: str) -> tuple[str, ...]:
        """The units that will send just this; without `agent` whoever they belong to."""
        found = self._about(tenant, name, about).values()
        return tuple(promiser.unit for promiser in found if agent in ("", promiser.agent))

    def _break(self, promises: Sequence[Promise], now: float) -> list[Promise]:
        broken = [promise for promise in promises if not self.is_open(promise)]
        for promise in broken:
            self._broken.pop(promise, None)
            self._broken[promise] = now + self._grace_s + LATE_S
            if len(self._broken) > BROKEN_MAX:
                del self._broken[next(iter(self._broken))]
        return broken

    def _forget_broken(self, now: float) -> None:
        while self._broken:
            oldest = next(iter(self._broken))
            if self._broken[oldest] > now:
                return
            del self._broken[oldest]

    def _about(self, tenant: str, name: str, about: str) -> dict[str, Promiser]:
        return self._candidates.get((tenant, name), {}).get(about, {})

    def _forget(self, unit: str) -> list[Promise]:
        promiser = self._units.pop(unit, None)
        if promiser is None:
            return []
        for name in promiser.names:
            self._withdraw(promiser, name)
        return [promiser.promise(name) for name in sorted(promiser.names)]

    def _withdraw(self, promiser: Promiser, name: str) -> None:
        by_about = self._candidates[promiser.tenant, name]
        units = by_about[promiser.about]
        del units[promiser.unit]
        if not units:
            del by_about[promiser.about]
        if not by_about:
            del self._candidates[promiser.tenant, name]
