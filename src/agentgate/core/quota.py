"""Quotas: how much of the agents' time a user, a task type or an agent may take, in cost units.

What is decided: whether a call may go on, or is refused because what it costs would pass a limit, and from when on it
would fit.

Rules. A call costs what its skill declares or the operator says, by default one unit. A limit counts the calls it
speaks of: for each of user, task type and agent it names one, or takes each for itself (`*`), or (left empty) all
together. It allows so many `units` in any `per_s` seconds, so many calls at once (`concurrent`), or both. Tenants are
apart. A call needs room within **all** limits that count it and takes all of them or none, at its entry (F107, F108:
what is charged afterwards is passed sixfold by whoever comes at once). At its end it is charged if it was sent, and
gives everything back if not. A refusal is `quota_exhausted`, names the limit, and says after which time the call would
fit within all of them; one that costs more than a limit ever allows is told never to come back. Observing counts up to
a limit, never past it.

How it works. A sliding window of `SLICES` slices for each limit and whoever it counts: units are booked on the slice of
their admission, and a slice leaves when its youngest unit is older than the window. So in no window of any position is
the limit passed, units come back at most a slice late, and nobody waits for longer than a window. A window is that of
whoever is counted, whatever the limit's period is now: when an operator changes it, what was booked within the new
period, as far as it is still known, counts on. `now` is monotonic (F109); each window has its own counts (F102).

Not covered: who waits for whom in a target's queue (slots), and how many messages a sender sends (rate). Counts are
not kept over a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, inf, isfinite
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentgate.core.bounded import BoundedMap
from agentgate.core.policy import Admit, Refuse, Ticket, Wake
from agentgate.model import AgentQuota, Call, Outcome, Problem, problem

EACH: Final = "*"
SLICES: Final = 20  # a window; units come back at most a twentieth of it late
SLICES_MAX: Final = 3 * SLICES  # of one whose period was changed again and again; then slices get longer
WINDOWS_MAX: Final = 20_000  # of at most some 2 KB each
LIMITS_MAX: Final = 100  # each is asked about every call
UNITS_MAX: Final = 1e12
PERIOD_S_MAX: Final = 31 * 86_400.0
AGENT_PERIOD_S_MAX: Final = 86_400.0  # of what is set at run time
RUNNING_AGAIN_S: Final = 1.0  # when there are too many at once: nobody knows when one ends
ROUNDING: Final = 1e-9  # of what was added and taken away in fractions, of units and of seconds


class QuotaLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"per_s": "per_seconds"}):
    """One limit. `user`, `task_type`, `agent`: a name, `*` for each by itself, or left out for all together.

    `units` in any `per_seconds`, `concurrent` calls at once. `name` is what refusals and headers call it.
    """

    user: str = ""
    task_type: str = ""
    agent: str = ""
    units: float | None = None
    per_s: float | None = None
    concurrent: int | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if (self.units is None) != (self.per_s is None):
            raise ValueError("units and per_seconds belong together")
        if self.units is None and self.concurrent is None:
            raise ValueError("a limit needs units and per_seconds, or concurrent")
        if self.units is not None and not 0 <= self.units <= UNITS_MAX:
            raise ValueError(f"units must be from 0 to {UNITS_MAX:g}, not {self.units!r}")
        if self.per_s is not None and not 1 <= self.per_s <= PERIOD_S_MAX:
            raise ValueError(f"per_seconds must be from 1 to {PERIOD_S_MAX:.0f}, not {self.per_s!r}")
        if self.concurrent is not None and self.concurrent < 0:
            raise ValueError(f"concurrent must be at least 0, not {self.concurrent!r}")
        if not (self.name.isascii() and self.name.isprintable()) or '"' in self.name or "\\" in self.name:
            raise ValueError(
                f"name must be printable ASCII without quotes, for it appears in headers, not {self.name!r}"
            )

    @property
    def title(self) -> str:
        """Its name, or whom it counts."""
        counted = (("user", self.user), ("task_type", self.task_type), ("agent", self.agent))
        return self.name or " ".join(f"{what}={whom}" for what, whom in counted if whom) or "everybody"


class TaskCost(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What calls of a task type cost, whatever their agents declare."""

    task_type: str
    units: float

    def __post_init__(self) -> None:
        if not 0 <= self.units <= UNITS_MAX:
            raise ValueError(f"units must be from 0 to {UNITS_MAX:g}, not {self.units!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaOptions:
    """Who may take how much. There is no limit by default: what is fair, only the operator knows.

    - `limits`, none: each is a `QuotaLimit`.
    - `costs`, none: a task type costs what its agent declares, by default 1 unit; these come before that.
    """

    limits: tuple[QuotaLimit, ...] = ()
    costs: tuple[TaskCost, ...] = ()

    def __post_init__(self) -> None:
        if len(self.limits) > LIMITS_MAX:
            raise ValueError(f"at most {LIMITS_MAX} limits, not {len(self.limits)}: each is asked about every call")


class Standing(NamedTuple):
    """How one limit stands for a call, for headers: `reset_s` is when the next units come back (0: all are there)."""

    name: str
    units: float
    per_s: float
    remaining: float
    reset_s: float


class _Slice:
    """What was admitted within one slice of time."""

    __slots__ = ("last_at", "number", "units")

    def __init__(self, number: int) -> None:
        self.number = number  # -1: it has left the window
        self.units = 0.0
        self.last_at = 0.0  # when its youngest unit was booked

    def stays_s(self, per_s: float, now: float) -> float:
        """For how long it is within a window yet; never longer than that."""
        return per_s - (now - self.last_at)


class _Window:
    """What one limit counts of whoever it counts."""

    __slots__ = ("running", "slices", "used")

    def __init__(self) -> None:
        self.slices: list[_Slice] = []
        self.used = 0.0
        self.running = 0

    def forget(self, per_s: float, now: float) -> None:
        """Slices that are older than the window leave."""
        slices = self.slices
        while slices and slices[0].stays_s(per_s, now) <= ROUNDING:
            gone = slices.pop(0)
            self.used -= gone.units
            gone.number = -1
        if not slices:
            self.used = 0.0

    def take(self, units: float, per_s: float, now: float) -> _Slice:
        """Book units on the slice of this moment."""
        number = int(now * SLICES / per_s)
        if not self.slices or (self.slices[-1].number != number and len(self.slices) < SLICES_MAX):
            self.slices.append(_Slice(number))
        booked = self.slices[-1]
        booked.units += units
        booked.last_at = now
        self.used += units
        return booked

    def give_back(self, units: float, taken: _Slice) -> None:
        """What was booked there did not happen after all."""
        if taken.number >= 0:
            taken.units -= units
            self.used -= units


class _Rule(NamedTuple):
    """A limit as it concerns one call, with whose window it is."""

    limit: QuotaLimit
    key: tuple[str, ...]


class _Taken(NamedTuple):
    window: _Window
    slice: _Slice | None


class QuotaTicket(Ticket, eq=False, kw_only=True):
    """A call that was admitted, and where it is counted."""

    taken: list[_Taken]


class Quotas:
    """The quotas of all users, task types and agents; see `core.policy` for the shape. Never parks.

    `agents` is what operators have set at run time, by tenant and agent; it may change at any time.
    """

    def __init__(self, options: QuotaOptions, agents: Mapping[tuple[str, str], AgentQuota] | None = None) -> None:
        self._limits = options.limits
        self._numbers = [str(number) for number in range(len(options.limits))]
        self._costs = {cost.task_type: cost.units for cost in options.costs}
        self._agents = agents if agents is not None else {}
        self._windows: BoundedMap[tuple[str, ...], _Window] = BoundedMap(WINDOWS_MAX, keep=_is_busy)
        self._idle_s = max([AGENT_PERIOD_S_MAX, *(limit.per_s for limit in options.limits if limit.per_s is not None)])

    def __len__(self) -> int:
        return len(self._windows)

    @property
    def in_use(self) -> bool:
        """Whether there is any limit at all."""
        return bool(self._limits or self._agents)

    def cost(self, task_type: str, declared: float) -> float:
        """What a call of this type costs."""
        return self._costs.get(task_type, declared)

    def ask(self, call: Call, now: float) -> Problem | None:
        """The refusal that `admit` would give now."""
        return self._refusal(call, list(self._rules(call)), now)

    def admit(self, call: Call, now: float) -> Admit | Refuse:
        """Take the call's cost from all limits that count it, or refuse it and take nothing."""
        rules = list(self._rules(call))
        error = self._refusal(call, rules, now)
        return Admit(self._take(call, rules, now)) if error is None else Refuse(error)

    def shadow(self, call: Call, now: float) -> QuotaTicket:
        """Count the call where it fits, and note where enforcing would have refused it."""
        rules = list(self._rules(call))
        if self._refusal(call, rules, now) is None:
            return self._take(call, rules, now)
        return QuotaTicket(call, "would_quota_exhausted", taken=[])

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        """The call has ended: what was sent is charged, anything else is given back."""
        if outcome.error is not None and not outcome.error.sent:
            self.abandon(ticket, now)
        else:
            for taken in _own(ticket).taken:
                taken.window.running -= 1

    def abandon(self, ticket: Ticket, now: float) -> None:  # noqa: ARG002 - the shape of a policy
        """The call was not made after all."""
        own = _own(ticket)
        for taken in own.taken:
            taken.window.running -= 1
            if taken.slice is not None:
                taken.window.give_back(own.call.cost, taken.slice)

    def tick(self, now: float) -> list[Wake]:
        """Forget who has not been seen for longer than any window; wakes nobody."""
        self._windows.sweep(now, self._idle_s)
        return []

    def next_deadline(self) -> float | None:
        """Never: forgetting can wait for the next call."""
        return None

    def standing(self, call: Call, now: float) -> list[Standing]:
        """How every limit in units that counts this call stands now."""
        found: list[Standing] = []
        for limit, key in self._rules(call):
            if limit.units is None or limit.per_s is None:
                continue
            window = self._windows.peek(key) or _Window()
            window.forget(limit.per_s, now)
            reset_s = window.slices[0].stays_s(limit.per_s, now) if window.slices else 0.0
            found.append(Standing(limit.title, limit.units, limit.per_s, max(0.0, limit.units - window.used), reset_s))
        return found

    def nearest(self, call: Call, now: float) -> Standing | None:
        """The limit in units that one more call like this would bring nearest to its end, or furthest beyond."""
        return min(self.standing(call, now), key=lambda standing: _left_after(standing, call.cost), default=None)

    def _rules(self, call: Call) -> Iterator[_Rule]:
        """The limits that count this call, each with the window that is meant."""
        for number, limit in zip(self._numbers, self._limits, strict=True):
            whom = _whom(limit.user, call.user), _whom(limit.task_type, call.task_type), _whom(limit.agent, call.agent)
            if None not in whom:
                yield _Rule(limit, (number, call.tenant, *map(str, whom)))
        given = self._agents.get((call.tenant, call.agent)) if self._agents else None
        if given is not None:
            limit = QuotaLimit(agent=call.agent, units=given.units, per_s=given.per_s)
            yield _Rule(limit, ("agent", call.tenant, call.agent))

    def _refusal(self, call: Call, rules: list[_Rule], now: float) -> Problem | None:
        """Why it does not fit; of several limits, the one that takes longest to have room."""
        tight: tuple[float, _Rule, str] | None = None
        for rule in rules:
            window = self._windows.peek(rule.key)
            if window is None:
                window = _Window()
            found = _tightness(rule.limit, window, call.cost, now)
            if found is not None and (tight is None or found[0] > tight[0]):
                tight = (found[0], rule, found[1])
        if tight is None:
            return None
        wait_s, rule, why = tight
        whose = (call.user or call.caller) if rule.limit.user else "all callers together"
        detail = f"{whose}: {why}, by the limit {rule.limit.title!r}"
        if not isfinite(wait_s):
            return replace(problem("quota_exhausted", detail=detail), retry="never")
        return problem("quota_exhausted", retry_after_s=ceil(wait_s * 1000) / 1000, detail=detail)

    def _take(self, call: Call, rules: list[_Rule], now: float) -> QuotaTicket:
        ticket = QuotaTicket(call, taken=[])
        for limit, key in rules:
            window = self._windows.get(key)
            if window is None:
                self.tick(now)
                window = self._windows[key] = _Window()
            window.running += 1
            booked = window.take(call.cost, limit.per_s, now) if limit.per_s is not None else None
            ticket.taken.append(_Taken(window, booked))
        return ticket


def _is_busy(window: _Window) -> bool:
    return window.running > 0


def _whom(wanted: str, name: str) -> str | None:
    """Under which name a call is counted; None when the limit does not speak of it."""
    if not wanted:
        return ""
    return name if wanted in (EACH, name) else None


def _left_after(standing: Standing, cost: float) -> float:
    """Which share of a limit would be left; less than nothing if the call does not fit."""
    return (standing.remaining - cost) / standing.units if standing.units else -inf


def _tightness(limit: QuotaLimit, window: _Window, cost: float, now: float) -> tuple[float, str] | None:
    """After which time the cost would fit, and why not now; None when it fits."""
    if limit.concurrent is not None and window.running >= limit.concurrent:
        wait_s = RUNNING_AGAIN_S if limit.concurrent else inf
        return wait_s, f"{window.running} calls are under way, {limit.concurrent} may be"
    if limit.units is None or limit.per_s is None:
        return None
    window.forget(limit.per_s, now)
    over = window.used + cost - limit.units
    if over <= ROUNDING * limit.units:
        return None
    why = f"{window.used:g} of {limit.units:g} units a {limit.per_s:g} s are used and this call costs {cost:g}"
    for taken in window.slices:
        over -= taken.units
        if over <= ROUNDING * limit.units:
            return taken.stays_s(limit.per_s, now), why
    return inf, why


def _own(ticket: Ticket) -> QuotaTicket:
    assert isinstance(ticket, QuotaTicket), "a ticket of another policy"
    return ticket
