"""A call on its way through the gate: what the stages know about it beyond the call itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgate.core.keys import shown_key
from agentgate.model import Call, Outcome, Problem, Skill
from agentgate.runtime.later import first

if TYPE_CHECKING:
    from agentgate.core.slots import SlotTicket
    from agentgate.gateway.flights import Flight
    from agentgate.gateway.units import Unit

# From a unit that was given up already, only an answer that would end the call is welcome: it was told to stop, and
# that it did so, or failed, is no news.
FINAL_CODES: Final[frozenset[str]] = frozenset({"", "rejected", "malformed_output"})


class Passage:
    """One call from its entry to its outcome. Stages read it and note what they found; each field has one writer."""

    __slots__ = (
        "_key",
        "attempt_ended_at",
        "attempts",
        "breaker_state",
        "call",
        "earlier",
        "flight",
        "gap_s",
        "last_instance",
        "lost_race",
        "may_have_run",
        "notes",
        "queued_s",
        "refusal",
        "skill",
        "slot",
        "slot_taken",
        "started_wall",
        "unit",
        "until",
    )

    def __init__(self, call: Call, started_wall: float, refusal: Problem | None = None) -> None:
        self.call = call
        self.started_wall = started_wall
        self.refusal = refusal  # entry: what is wrong with the request itself
        self._key = ""
        self.notes: list[str] = []
        self.flight: Flight | None = None  # replay: the flight this call owns
        self.lost_race = False  # claim: another gateway was faster
        self.skill: Skill | None = None  # preflight
        self.attempts = 0  # retry
        self.gap_s = 0.0
        self.attempt_ended_at = 0.0
        self.last_instance = ""
        self.slot: SlotTicket | None = None  # slot: until a unit takes it over
        self.slot_taken: SlotTicket | None = None
        self.queued_s = 0.0
        self.breaker_state = ""  # breaker
        self.unit: Unit | None = None  # claim: the unit of the current attempt
        self.earlier: list[Unit] = []  # units of earlier attempts that may still answer first
        self.until = 0.0  # timeout: when the current attempt is cut
        self.may_have_run = False  # retry: an earlier attempt was sent, and nobody said that nothing happened

    @property
    def key(self) -> str:
        """The idempotency key as shown."""
        if not self._key:
            self._key = shown_key(self.call)
        return self._key

    @property
    def sent(self) -> bool:
        """Whether the target may have seen the request and acted on it."""
        if self.may_have_run or (self.flight is not None and self.flight.sent):
            return True
        return any(unit.sent for unit in self.live_units)

    @property
    def safe(self) -> bool:
        """Whether running it again does no harm: a read, or a skill declared repeatable."""
        return not self.call.keyed or self.call.repeatable

    @property
    def live_units(self) -> list[Unit]:
        """The units that have not answered yet."""
        units = self.earlier if self.unit is None else [*self.earlier, self.unit]
        return [unit for unit in units if not unit.answer.done()]

    def begin(self, unit: Unit) -> None:
        """This unit is the current attempt's; it has the slot now."""
        self.unit = unit
        self.slot = None

    def retire_unit(self) -> None:
        """The current attempt is over; its unit, if it has not answered, may still come first."""
        if self.unit is None:
            return
        self.last_instance = self.unit.instance
        if not self.unit.answer.done():
            self.earlier.append(self.unit)
        self.unit = None

    async def first_answer(self, until: float) -> Outcome | None:
        """The current unit's answer or an earlier one's that ends the call; None when `until` passes before."""
        while True:
            current = self.unit.answer if self.unit is not None else None
            answers = [unit.answer for unit in self.earlier]
            done = await first(answers if current is None else [current, *answers], until)
            if done is None:
                return None
            outcome: Outcome = done.result()
            if done is current or outcome.code in FINAL_CODES:
                return outcome
            self.earlier = [unit for unit in self.earlier if unit.answer is not done]
