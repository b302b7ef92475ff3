"""The running work behind one key, shared by its callers (DESIGN 4.2).

A flight opens when a keyed call is not answered from the ledger, so that repeats join it even while the call still
queues. One caller owns it and walks on through the gate; the others wait here, each until its own deadline. The rules:

- Whoever holds a final answer of the flight gives it to everybody.
- When the owner leaves while a unit is live, the flight goes on without an owner and ends with the unit's answer.
- When the owner leaves without a live unit, or an ownerless unit ends and freed the key, the joiner with most time
  left becomes the owner: it walks on from here under its own deadline, at the queue place the owner had.
- A refusal that more time would cure is shared only if no joiner has more time, and `deadlock` never: who waits for
  its own unit need not be in that circle.
- When its unit is given up, everybody leaves with what is said then. The flight goes on with the unit; who comes before
  that has ended waits for nothing: he gets the same, if it is a degraded answer, or is told that it still runs.

So at any moment at most one caller walks on for a key, and it starts nothing beside a live unit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal

from agentgate.model import KeyId, Outcome, plain
from agentgate.runtime.later import Later, first

if TYPE_CHECKING:
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.units import Unit

TakeOver = Literal["take_over"]  # the joiner is the owner now
Recheck = Literal["recheck"]  # the flight says nothing: ask the ledger

TAKE_OVER: Final = "take_over"
RECHECK: Final = "recheck"

JoinEnd = Outcome | TakeOver | Recheck


class Flight:
    """One key in the air. `units` are those that may still answer; `answer` the final one, once there is one."""

    def __init__(self, flights: Flights, key: KeyId, fingerprint: str, owner: Passage | None) -> None:
        self._flights = flights
        self.key = key
        self.fingerprint = fingerprint
        self.owner = owner
        self.units: set[Unit] = set()
        self.answer: Outcome | Recheck | None = None
        self.may_have_run = False  # an attempt was sent, and nobody said that nothing happened
        self.released: Outcome | None = None  # its unit was given up, and this was said
        self.is_settled = False  # by an operator, while nobody else could tell
        self.place = 0  # the owner's place in the target's queue, for whoever takes over
        self._joiners: dict[Passage, Later[JoinEnd]] = {}
        self._over: Later[None] | None = None

    @property
    def sent(self) -> bool:
        """Whether a target may have seen the request and acted on it."""
        return self.may_have_run or any(unit.sent for unit in self.units)

    def state(self) -> str:
        """What is going on, in words, for a caller that does not want to wait."""
        if not self.units:
            return "it waits for its turn at the target"
        notes = [note for unit in self.units for note in unit.notes[-1:]]
        running = ", ".join(sorted(map(_shown, self.units)))
        return f"running as {running}" + (f"; last heard: {notes[-1]}" if notes else "")

    async def join(self, passage: Passage) -> JoinEnd | None:
        """Wait for the flight's end, for ownership, or (None) until the caller's own deadline."""
        future: Later[JoinEnd] = Later()
        self._joiners[passage] = future
        try:
            done = await first([future], passage.call.deadline)
        except asyncio.CancelledError:
            if future.done() and future.result() == TAKE_OVER:
                self.leave(passage, None)
            raise
        finally:
            self._joiners.pop(passage, None)
        return done.result() if done is not None else None

    def leave(self, owner: Passage, outcome: Outcome | None) -> None:
        """The owner is through, with an outcome or (None) because its caller went away."""
        assert self.owner is owner, "only the owner leaves a flight"
        self.owner = None
        if self.answer is not None:
            self._finish(self.answer)
        elif self.units:
            return
        elif outcome is None or outcome.code == "deadlock" or self._more_time_helps(owner, outcome):
            self._hand_over()
        else:
            self._finish(outcome)

    @property
    def waited_until(self) -> float | None:
        """Until when somebody waits for it; None: nobody does."""
        waiting = [self.owner] if self.owner is not None else []
        return max((passage.call.deadline for passage in [*waiting, *self._joiners]), default=None)

    def release(self, outcome: Outcome) -> None:
        """Its unit was given up: this is what whoever waits gets, and nobody waits from now on."""
        self.released = outcome
        for future in self._joiners.values():
            if not future.done():
                future.set_result(outcome)
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def recheck(self, owner: Passage) -> None:
        """Another gateway has taken the key: everybody asks the ledger anew."""
        self.answer = RECHECK
        self.leave(owner, None)

    def over(self) -> Later[None]:
        """Comes true when the flight has ended or was released, for those who only want to know."""
        if self._over is None:
            self._over = Later()
        return self._over

    def settled(self) -> None:
        """An operator has said what became of the key, which was unknown: everybody asks the ledger anew.

        Who walks on for the key starts nothing any more (the claim sees to that): it may be free, and another's by now.
        With a unit, somebody has asked the ledger after the operator's word, and goes by it already.
        """
        if not self.units:
            self.is_settled = True
            self._finish(RECHECK)

    def closed(self) -> None:
        """It is no flight any more."""
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def unit_started(self, unit: Unit) -> None:
        """A unit is about to run for this key."""
        self.units.add(unit)

    def unit_ended(self, unit: Unit, answer: Outcome | Recheck | None) -> None:
        """A unit ended: with the key's final answer, with an open question (recheck), or it freed the key (None)."""
        self.units.discard(unit)
        if answer is not None and (self.answer is None or self.answer == RECHECK):
            self.answer = answer
        if self.owner is not None or (self.units and self.answer is None):
            return
        if self.answer is not None:
            self._finish(self.answer)
        else:
            self._hand_over()

    def _more_time_helps(self, owner: Passage, outcome: Outcome) -> bool:
        error = outcome.error
        if error is None or not (error.retry == "after" or error.code in ("deadline_exceeded", "cancelled")):
            return False
        return any(joiner.call.deadline > owner.call.deadline for joiner in self._joiners)

    def _hand_over(self) -> None:
        waiting = {joiner: future for joiner, future in self._joiners.items() if not future.done()}
        if not waiting:
            self._flights.close(self)
            return
        heir = max(waiting, key=lambda joiner: joiner.call.deadline)
        self.owner = heir
        waiting[heir].set_result(TAKE_OVER)

    def _finish(self, end: Outcome | Recheck) -> None:
        self._flights.close(self)
        for future in self._joiners.values():
            if not future.done():
                future.set_result(end)


def _shown(unit: Unit) -> str:
    call = unit.call
    return f"{plain(call.agent)}.{call.task_type}({call.business_key}), unit {unit.id} at {plain(unit.instance)}"


class Flights:
    """All keys in the air, bounded by `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._flights: dict[KeyId, Flight] = {}

    def __len__(self) -> int:
        return len(self._flights)

    def get(self, key: KeyId) -> Flight | None:
        """The flight of a key, if one is in the air."""
        return self._flights.get(key)

    def open(self, key: KeyId, fingerprint: str, owner: Passage | None) -> Flight:
        """A new flight; the caller has made sure that there is none."""
        assert key not in self._flights, "one flight a key"
        flight = self._flights[key] = Flight(self, key, fingerprint, owner)
        return flight

    @property
    def full(self) -> bool:
        """Whether no further key may take off."""
        return len(self._flights) >= self.limit

    def close(self, flight: Flight) -> None:
        """The flight is over."""
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]
            flight.closed()
