"""Cool-down: an agent that asked for time is left alone until then, by everybody.

What is decided: whether a call may go to an agent now, waits, or fails with the time at which the agent is back.

Rules. Only the agent itself starts a cool-down: an outcome with fault `throttled` and code `rate_limited` (429, or
503 with Retry-After, `TryLater` for everyone) until the time it named, counted from then; an ordinary `TryLater`
delays its own call alone and starts none, and the gate's own rate limit is another matter altogether. The end only
ever moves away: a shorter wish does not shorten a longer one (FAILURES F46). A Retry-After of 0 means 0 (F48); one
that is missing means `default_s`. A call whose deadline lies after the end waits for it; any other fails at once with
`overloaded` and the time that is left (F47). Being asked to wait is not a failure: no breaker learns of it.

How it works. Per agent an end and the calls that wait for it, in order. `tick` looks at agents whose end has come,
and at those whose end has moved: there, calls that no longer fit are refused.

Not covered: spreading the calls that go on together at the end; the agent's slots and queue do that.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from agentgate.core.bounded import BoundedMap
from agentgate.core.policy import Admit, Decision, Park, Refuse, Ticket, Wake
from agentgate.core.ranges import require
from agentgate.model import Call, Outcome, Problem, problem

AGENTS_MAX: Final = 10_000
IDLE_S: Final = 3600.0  # or the longest cool-down: until then an entry may still hold


@dataclass(frozen=True, kw_only=True)
class CoolDownOptions:
    """How long an agent is left alone, and how many calls wait for it."""

    # A 429 that names no time: the shortest that Retry-After in seconds could have named. 0: go on at once.
    default_s: float = 1.0
    # A longer wish is honoured in parts: after an hour one call finds out whether it still holds.
    end_max_s: float = 3600.0
    # Calls that wait for one agent; as long as its queue, so that all of them find a place there.
    parked_max: int = 1000

    def __post_init__(self) -> None:
        require(self, "default_s", high=3600.0)
        require(self, "end_max_s", high=86_400.0)
        require(self, "parked_max", high=100_000)


class _Rest:
    """One agent's cool-down."""

    __slots__ = ("end", "parked")

    def __init__(self) -> None:
        self.end = -inf
        self.parked: dict[CoolDownTicket, None] = {}


class CoolDownTicket(Ticket, eq=False, kw_only=True):
    """A call that was admitted, or that waits for an agent's end."""

    rest: _Rest | None = None


class CoolDown:
    """The cool-downs of all agents; see `core.policy` for the shape."""

    def __init__(self, options: CoolDownOptions) -> None:
        self._options = options
        self._idle_s = max(IDLE_S, options.end_max_s)
        self._rests: BoundedMap[str, _Rest] = BoundedMap(AGENTS_MAX, keep=lambda rest: bool(rest.parked))
        self._waiting: dict[_Rest, None] = {}  # those with parked calls; a call holds each of them
        self._due = inf  # before this moment `tick` has nothing to do

    def __len__(self) -> int:
        return len(self._rests)

    def ask(self, call: Call, now: float) -> Problem | None:
        """The refusal that `admit` would give now."""
        rest = self._rests.peek(call.agent)
        return None if rest is None or rest.end <= now else self._refusal(rest, call, now)

    def admit(self, call: Call, now: float) -> Decision:
        """Let the call through, park it until the end, or refuse it."""
        rest = self._rests.peek(call.agent)
        if rest is None or rest.end <= now:
            return Admit(CoolDownTicket(call))
        error = self._refusal(rest, call, now)
        if error is not None:
            return Refuse(error)
        ticket = CoolDownTicket(call, rest=rest)
        rest.parked[ticket] = None
        self._waiting[rest] = None
        self._due = min(self._due, rest.end)
        return Park(ticket, rest.end)

    def shadow(self, call: Call, now: float) -> CoolDownTicket:
        """Let it through, and note what enforcing would have done."""
        rest = self._rests.peek(call.agent)
        if rest is None or rest.end <= now:
            return CoolDownTicket(call)
        return CoolDownTicket(call, would="would_cool_down")

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        """Start or prolong a cool-down if the agent asked for time."""
        error = outcome.error
        if error is None or error.fault != "throttled" or error.code != "rate_limited":
            return
        asked_s = self._options.default_s if error.retry_after_ms is None else error.retry_after_ms / 1000
        end = now + min(asked_s, self._options.end_max_s)
        agent = ticket.call.agent
        rest = self._rests.get(agent)
        if rest is None:
            rest = self._rests[agent] = _Rest()
        if end > rest.end:
            rest.end = end
            if rest.parked:
                self._due = now  # some may not fit any more

    def abandon(self, ticket: Ticket, now: float) -> None:  # noqa: ARG002 - the shape of a policy
        """The call left; if it was parked, its place is free."""
        assert isinstance(ticket, CoolDownTicket)
        if ticket.rest is not None:
            ticket.rest.parked.pop(ticket, None)

    def tick(self, now: float) -> list[Wake]:
        """Admit what waited for an end that has come; refuse what no longer fits before one that moved."""
        self._rests.sweep(now, self._idle_s)
        if now < self._due:
            return []
        wakes = [wake for rest in self._waiting for wake in self._wakes(rest, now)]
        self._waiting = {rest: None for rest in self._waiting if rest.parked}
        self._due = min((rest.end for rest in self._waiting), default=inf)
        return wakes

    def next_deadline(self) -> float | None:
        """The first end that a call waits for."""
        return None if self._due == inf else self._due

    def cooling(self, now: float) -> dict[str, float]:
        """For display: the agents that are left alone now, each with the seconds that remain."""
        return {agent: rest.end - now for agent, rest in self._rests.items() if rest.end > now}

    def _wakes(self, rest: _Rest, now: float) -> list[Wake]:
        if rest.end <= now:
            wakes = [Wake(ticket, Admit(ticket)) for ticket in rest.parked]
            rest.parked.clear()
            return wakes
        late = [ticket for ticket in rest.parked if ticket.call.deadline <= rest.end]
        for ticket in late:
            del rest.parked[ticket]
        return [Wake(ticket, Refuse(self._problem(rest, now))) for ticket in late]

    def _refusal(self, rest: _Rest, call: Call, now: float) -> Problem | None:
        fits = rest.end < call.deadline and len(rest.parked) < self._options.parked_max
        return None if fits else self._problem(rest, now)

    def _problem(self, rest: _Rest, now: float) -> Problem:
        wait_s = rest.end - now
        return problem("overloaded", retry_after_s=wait_s, detail=f"the agent asked for {wait_s:.3g} s more")
