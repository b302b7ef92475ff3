"""The message rate of a sender: a token bucket that paces.

What is decided: whether a sender's call passes now, waits for its turn, or is refused because its turn comes too late.

Rules. A sender (tenant and caller) may send `rate_per_s` calls a second, and `burst` at once after a rest. A call
above that is parked until its turn, first come, first served, if the turn lies before its deadline and fewer than
`parked_max` of this sender wait already; otherwise it is refused with `rate_limited` and the time after which there
would have been a turn. A parked call that leaves gives its turn to the next one. In any window of w seconds at most
`burst + rate * w` calls of a sender pass. Observing counts up to the limit, never past it, so that switching to
enforce does not begin with a debt.

How it works. One number a sender: the moment of its next turn. A call that passes moves it by one interval, from at
least `(burst - 1)` intervals ago; that is a token bucket without tokens to refill, and the n-th parked call's turn is
n intervals later. `now` is monotonic, so steps of the wall clock mean nothing (FAILURES F109). Senders with parked
calls stand in a heap by their next turn.

Not covered: what a call costs its target (quotas) and how many may run at once (slots).
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final

from agentgate.core.bounded import BoundedMap
from agentgate.core.policy import Admit, Decision, Park, Refuse, Ticket, Wake
from agentgate.core.ranges import require
from agentgate.model import Call, Outcome, Problem, problem

SENDERS_MAX: Final = 10_000
IDLE_S: Final = 3600.0
EARLY_S: Final = 1e-7  # a turn may come this much early: rounding must not make it miss its own timer


@dataclass(frozen=True, kw_only=True)
class RateOptions:
    """What one sender may send."""

    # REQUIREMENTS B1. An agent that sends more than this for long is in a loop.
    rate_per_s: float = 200.0
    # A second's worth: a fan-out passes at once, a storm does not. 1: evenly spaced.
    burst: int = 200
    # Half a second of waiting at the default rate; who has more in flight than that should hear of it. 0: never wait.
    parked_max: int = 100

    def __post_init__(self) -> None:
        require(self, "rate_per_s", low=0.01, high=100_000.0)
        require(self, "burst", low=1, high=1_000_000)
        require(self, "parked_max", high=100_000)


class _Sender:
    __slots__ = ("listed", "parked", "turn")

    def __init__(self) -> None:
        self.turn = -inf  # from when on the next call may pass
        self.parked: dict[RateTicket, None] = {}
        self.listed = False  # stands in the heap


class RateTicket(Ticket, eq=False, kw_only=True):
    """A call that passed, or that waits for its turn."""

    sender: _Sender


class RateLimiter:
    """The rates of all senders; see `core.policy` for the shape."""

    def __init__(self, options: RateOptions) -> None:
        self._parked_max = options.parked_max
        self._interval_s = 1.0 / options.rate_per_s
        self._rest_s = (options.burst - 1) * self._interval_s
        self.burst = options.burst
        self._senders: BoundedMap[tuple[str, str], _Sender] = BoundedMap(SENDERS_MAX, keep=lambda s: bool(s.parked))
        self._turns: list[tuple[float, int, _Sender]] = []
        self._numbers = count()  # tell equal turns apart

    def __len__(self) -> int:
        return len(self._senders)

    def ask(self, call: Call, now: float) -> Problem | None:
        """The refusal that `admit` would give now."""
        sender = self._senders.peek((call.tenant, call.caller))
        return None if sender is None or self._is_free(sender, now) else self._refusal(sender, call, now)

    def left(self, tenant: str, caller: str, now: float) -> int:
        """How many calls of this sender would pass at once."""
        sender = self._senders.peek((tenant, caller))
        if sender is None:
            return self.burst
        if not self._is_free(sender, now):
            return 0
        waited_s = min(now - sender.turn, self._rest_s)
        return 1 + int((waited_s + EARLY_S) / self._interval_s)

    def admit(self, call: Call, now: float) -> Decision:
        """Let the call pass, park it until its turn, or refuse it."""
        sender = self._sender(call)
        if self._is_free(sender, now):
            self._pass(sender, now)
            return Admit(RateTicket(call, sender=sender))
        error = self._refusal(sender, call, now)
        if error is not None:
            return Refuse(error)
        ticket = RateTicket(call, sender=sender)
        until = max(self._turn(sender), now)
        sender.parked[ticket] = None
        self._list(sender)
        return Park(ticket, until)

    def shadow(self, call: Call, now: float) -> RateTicket:
        """Let it pass whatever the rate, and note what enforcing would have done."""
        sender = self._sender(call)
        if self._is_free(sender, now):
            self._pass(sender, now)
            return RateTicket(call, sender=sender)
        would = "would_pace" if self._refusal(sender, call, now) is None else "would_rate_limit"
        return RateTicket(call, would, sender=sender)

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        """Nothing: what was sent was sent."""

    def abandon(self, ticket: Ticket, now: float) -> None:  # noqa: ARG002 - the shape of a policy
        """If the call was parked, those behind it move up; a call that passed has used its turn."""
        assert isinstance(ticket, RateTicket)
        ticket.sender.parked.pop(ticket, None)

    def tick(self, now: float) -> list[Wake]:
        """Let pass whose turn has come."""
        self._senders.sweep(now, IDLE_S)
        wakes: list[Wake] = []
        turns = self._turns
        while turns and turns[0][0] <= now + EARLY_S:
            sender = heappop(turns)[2]
            sender.listed = False
            while sender.parked and sender.turn <= now + EARLY_S:
                ticket = next(iter(sender.parked))
                del sender.parked[ticket]
                self._pass(sender, now)
                wakes.append(Wake(ticket, Admit(ticket)))
            if sender.parked:
                self._list(sender)
        return wakes

    def next_deadline(self) -> float | None:
        """The first turn that a call waits for."""
        turns = self._turns
        while turns and not turns[0][2].parked:
            heappop(turns)[2].listed = False
        return turns[0][0] if turns else None

    def _sender(self, call: Call) -> _Sender:
        key = (call.tenant, call.caller)
        sender = self._senders.get(key)
        if sender is None:
            sender = self._senders[key] = _Sender()
        return sender

    def _is_free(self, sender: _Sender, now: float) -> bool:
        return not sender.parked and sender.turn <= now + EARLY_S

    def _pass(self, sender: _Sender, now: float) -> None:
        # From `now` at the latest: what a turn came early must not add up, or steady traffic would be refused one day.
        sender.turn = max(min(sender.turn, now), now - self._rest_s) + self._interval_s

    def _turn(self, sender: _Sender) -> float:
        """The turn of the next call that parks."""
        return sender.turn + len(sender.parked) * self._interval_s

    def _refusal(self, sender: _Sender, call: Call, now: float) -> Problem | None:
        """Why a call that has to wait may not; None when it may."""
        turn = self._turn(sender)
        if turn < call.deadline and len(sender.parked) < self._parked_max:
            return None
        wait_s = max(turn - now, 0.0)
        return problem(
            "rate_limited", retry_after_s=wait_s, detail=f"the next turn of {call.caller} is in {wait_s:.3g} s"
        )

    def _list(self, sender: _Sender) -> None:
        if not sender.listed:
            sender.listed = True
            heappush(self._turns, (sender.turn, next(self._numbers), sender))
