"""The breakers of all agents, as a policy: one for each (agent, task type), one for each agent's connection.

Decides whether an attempt may be sent. Rules (DESIGN 4.3, B2):

- Faults of one task type never cut off another type, and never another agent. Only what shows that the agent cannot
  be reached at all counts against all its types: an attempt that could not even be sent (`unconnected`).
- A call enters both breakers or none. What its outcome says to either is the table `RESULTS`; what is not the target's
  doing is neutral to both (`core.verdict`).
- While half-open, a type's breaker tries calls that are not heavy first, the agent's own those of the lighter task
  types (`core.lightness`).
- Every ticket ends exactly once: `settle`, `skip` (its fault was an instance's, ejection was decided first) or
  `abandon`. `retract` takes settled faults back when an instance is ejected for them after all.
- What opened is drained by `openings`: the calls that wait for it in a queue are to be told. Reopenings are named as
  well, because calls may queue behind trials.

How it works. Closed breakers are forgotten when they are the least recently used; open ones are kept as long as there
is room (`core.bounded`). `tick` only has to notice trials that ran out; nothing here ever parks a call.

Not covered: retries, and who is told of an opening.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Final, NamedTuple

from agentgate.core.bounded import BoundedMap
from agentgate.core.breaker import Breaker, BreakerOptions, Pass, Result, State
from agentgate.core.lightness import Lightness
from agentgate.core.policy import Admit, Refuse, Ticket, Wake
from agentgate.core.verdict import Verdict, verdict_of
from agentgate.model import Call, Outcome, Problem, problem

# What a verdict says to the breaker of the task type and to the agent's own. An answer of whatever kind shows that the
# agent can be reached; that a sent request was never answered shows neither.
RESULTS: Final[dict[Verdict, tuple[Result, Result]]] = {
    "ok": ("ok", "ok"),
    "raised": ("fault", "ok"),
    "unanswered": ("fault", "neutral"),
    "unconnected": ("neutral", "fault"),
    "rejected": ("rejected", "neutral"),
    "neutral": ("neutral", "neutral"),
}

SEVERITY: Final[dict[State, int]] = {"closed": 0, "half_open": 1, "open": 2}

IDLE_S: Final = 600.0  # a closed breaker that nobody used for so long has nothing left to remember


class Opening(NamedTuple):
    """A breaker opened; without a task type it is the agent's own, which means all of its types.

    `reopens_at` is when trials begin, in monotonic seconds.
    """

    agent: str
    task_type: str | None
    reopens_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakerState:
    """One breaker as shown to people. Times are monotonic seconds; `opened` says how often it did."""

    agent: str
    task_type: str | None
    state: State
    ok: int
    faults: int
    slow: int
    rejected: int
    ratio: float
    since: float
    reopens_at: float | None
    opened: int


class BreakerTicket(Ticket, eq=False, kw_only=True):
    """A call that entered two breakers."""

    own: _Own
    own_pass: Pass
    typed: Breaker
    typed_pass: Pass

    @property
    def state(self) -> State:
        """The state of the two that matters now."""
        return _severer(self.own.breaker.state, self.typed.state)


class Breakers:
    """Admits calls to agents that answer; see `core.policy` for the shape."""

    def __init__(self, options: BreakerOptions, draw: Callable[[], float]) -> None:
        self._options = options
        # Slowness and refusals say something about a task type, nothing about a connection.
        self._own_options = replace(options, slow_call_s=None, rejected_ratio=None, backlog=None)
        self._draw = draw
        self._own: BoundedMap[str, _Own] = BoundedMap(options.breakers_max, keep=_own_is_busy)
        self._typed: BoundedMap[tuple[str, str], Breaker] = BoundedMap(options.breakers_max, keep=_is_busy)
        self._opened: deque[Opening] = deque(maxlen=options.breakers_max)
        self._trying: dict[Breaker, None] = {}  # breakers that may have trials
        self._due = inf  # no trial runs out before
        self.opened_total = 0

    def ask(self, call: Call, now: float) -> Problem | None:
        """The refusal that `admit` would give now."""
        return self._refusal(call, self._own.peek(call.agent), self._typed.peek((call.agent, call.task_type)), now)

    def admit(self, call: Call, now: float) -> Admit | Refuse:
        """Let the call through both breakers, or refuse it with `breaker_open`."""
        own, typed = self._own_of(call.agent, now), self._typed_of(call.agent, call.task_type, now)
        error = self._refusal(call, own, typed, now)
        return Admit(self._enter(call, own, typed, now)) if error is None else Refuse(error)

    def shadow(self, call: Call, now: float) -> BreakerTicket:
        """Let it through whatever the state, and note what enforcing would have done."""
        own, typed = self._own_of(call.agent, now), self._typed_of(call.agent, call.task_type, now)
        would = "" if self._refusal(call, own, typed, now) is None else "would_open"
        return self._enter(call, own, typed, now, would=would)

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        """Count what the outcome says about the target."""
        verdict = verdict_of(outcome)
        taken = self._finish(ticket, *RESULTS[verdict], now)
        if verdict == "ok" and not taken.call.heavy:
            taken.own.lightness.add(taken.call.task_type, now - taken.own_pass.entered_at)

    def skip(self, ticket: Ticket, now: float) -> None:
        """Give back what the ticket holds and count nothing: its outcome is not the agent's doing."""
        self._finish(ticket, "neutral", "neutral", now)

    def abandon(self, ticket: Ticket, now: float) -> None:
        """The call left; the same as `skip`."""
        self._finish(ticket, "neutral", "neutral", now)

    def retract(self, tickets: Iterable[BreakerTicket], now: float) -> None:
        """Take back settled faults that were those of an ejected instance, as far as they still count."""
        for ticket in tickets:
            ticket.typed.retract(ticket.typed_pass, now)
            ticket.own.breaker.retract(ticket.own_pass, now)

    def note_backlog(self, agent: str, task_type: str, queued: int, now: float) -> None:
        """So many calls of this type wait for the agent."""
        if self._options.backlog is not None:
            self._typed_of(agent, task_type, now).note_backlog(queued, now)

    def tick(self, now: float) -> list[Wake]:
        """Notice trials that ran out; wakes nobody."""
        if now >= self._due:
            for breaker in self._trying:
                breaker.advance(now)
            self._trying = {breaker: None for breaker in self._trying if breaker.next_expiry() < inf}
            self._due = min((breaker.next_expiry() for breaker in self._trying), default=inf)
        self._own.sweep(now, IDLE_S)
        self._typed.sweep(now, IDLE_S)
        return []

    def next_deadline(self) -> float | None:
        """When the first trial may run out."""
        return None if self._due == inf else self._due

    def openings(self) -> list[Opening]:
        """What opened since the last call; of one that did so more than once, the last time."""
        if not self._opened:
            return []
        opened = {(opening.agent, opening.task_type): opening for opening in self._opened}
        self._opened.clear()
        return list(opened.values())

    def state(self, agent: str, task_type: str, now: float) -> State:
        """The state a call of this type meets: the severer of its type's breaker and the agent's own."""
        own, typed = self._own.peek(agent), self._typed.peek((agent, task_type))
        of_agent = "closed" if own is None else own.breaker.state_at(now)
        of_type = "closed" if typed is None else typed.state_at(now)
        return _severer(of_agent, of_type)

    def states(self, now: float) -> list[BreakerState]:
        """Every breaker that is remembered, by agent and task type."""
        own = [_shown(agent, None, item.breaker, now) for agent, item in self._own.items()]
        typed = [_shown(agent, task_type, breaker, now) for (agent, task_type), breaker in self._typed.items()]
        return sorted(own + typed, key=lambda shown: (shown.agent, shown.task_type or ""))

    def _refusal(self, call: Call, own: _Own | None, typed: Breaker | None, now: float) -> Problem | None:
        if own is not None and own.breaker.state != "closed":
            light = not call.heavy and own.lightness.is_light(call.task_type)
            wait_s = own.breaker.refusal(now, light=light)
            if wait_s is not None:
                return problem("breaker_open", retry_after_s=wait_s, detail=f"{call.agent} cannot be reached")
        if typed is not None and typed.state != "closed":
            wait_s = typed.refusal(now, light=not call.heavy)
            if wait_s is not None:
                return problem("breaker_open", retry_after_s=wait_s, detail=f"{call.agent} fails at {call.task_type}")
        return None

    def _enter(self, call: Call, own: _Own, typed: Breaker, now: float, *, would: str = "") -> BreakerTicket:
        limit_s = call.skill_timeout_s or 0.0  # an honest answer of this skill may take so long
        ticket = BreakerTicket(
            call,
            would,
            own=own,
            own_pass=own.breaker.enter(now, heavy=call.heavy, limit_s=limit_s),
            typed=typed,
            typed_pass=typed.enter(now, heavy=call.heavy, limit_s=limit_s),
        )
        for breaker in (own.breaker, typed):
            if breaker.state == "half_open":
                self._trying[breaker] = None
                self._due = min(self._due, breaker.next_expiry())
        return ticket

    def _finish(self, ticket: Ticket, typed: Result, own: Result, now: float) -> BreakerTicket:
        assert isinstance(ticket, BreakerTicket), "a ticket of another policy"
        ticket.typed.leave(ticket.typed_pass, typed, now)
        ticket.own.breaker.leave(ticket.own_pass, own, now)
        return ticket

    def _own_of(self, agent: str, now: float) -> _Own:
        own = self._own.get(agent)
        if own is None:
            breaker = Breaker(self._own_options, self._draw, now, partial(self._note, agent, None))
            own = self._own[agent] = _Own(breaker, Lightness(self._options.types_max))
        return own

    def _typed_of(self, agent: str, task_type: str, now: float) -> Breaker:
        key = (agent, task_type)
        typed = self._typed.get(key)
        if typed is None:
            typed = Breaker(self._options, self._draw, now, partial(self._note, agent, task_type))
            self._typed[key] = typed
        return typed

    def _note(self, agent: str, task_type: str | None, reopens_at: float) -> None:
        self.opened_total += 1
        self._opened.append(Opening(agent, task_type, reopens_at))


class _Own(NamedTuple):
    breaker: Breaker
    lightness: Lightness


def _severer(one: State, other: State) -> State:
    return one if SEVERITY[one] > SEVERITY[other] else other


def _is_busy(breaker: Breaker) -> bool:
    return breaker.state != "closed"


def _own_is_busy(own: _Own) -> bool:
    return own.breaker.state != "closed"


def _shown(agent: str, task_type: str | None, breaker: Breaker, now: float) -> BreakerState:
    breaker.advance(now)
    breaker.window.roll(now)
    ok, faults, slow, rejected = breaker.window.totals
    outcomes = ok + faults + rejected
    return BreakerState(
        agent=agent,
        task_type=task_type,
        state=breaker.state,
        ok=ok,
        faults=faults,
        slow=slow,
        rejected=rejected,
        ratio=faults / outcomes if outcomes else 0.0,
        since=breaker.since,
        reopens_at=breaker.reopens_at,
        opened=breaker.openings,
    )
