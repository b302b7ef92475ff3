"""A call on its way through the gate: what the stages know about it beyond the call itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from agentgate.core.keys import shown_key
from agentgate.model import Call, LastAttempt, Outcome, Problem, Skill
from agentgate.runtime.later import first

if TYPE_CHECKING:
    from agentgate.core.slots import SlotTicket
    from agentgate.gateway.flights import Flight
    from agentgate.gateway.units import Unit
    from agentgate.gateway.waits import CallWait

# From a unit that was given up already, only an answer that would end the call is welcome: it was told to stop, and
# that it did so, or failed, is no news.
FINAL_CODES: Final[frozenset[str]] = frozenset({"", "rejected", "malformed_output"})


class Passage(Struct, eq=False):
    """One call from its entry to its outcome. Stages read it and note what they found; each field has one writer."""

    call: Call
    started_wall: float
    refusal: Problem | None = None  # entry: what is wrong with the request itself
    shown_key: str = ""
    notes: list[str] = field(default_factory=list)
    wait: CallWait | None = None  # wait: of the unit that makes it
    flight: Flight | None = None  # replay: the flight this call owns
    joined: Flight | None = None  # replay: the flight it waits for
    lost_race: bool = False  # claim: somebody else was faster, or the key is free anew
    skill: Skill | None = None  # preflight
    attempts: int = 0  # retry
    gap_s: float = 0.0
    attempt_ended_at: float = 0.0
    last_attempt: LastAttempt | None = None  # retry: the attempt that ended the call well
    last_instance: str = ""
    is_queued: bool = False  # slot: while it waits there
    slot: SlotTicket | None = None  # slot: until a unit takes it over
    slot_taken: SlotTicket | None = None
    queued_s: float = 0.0
    breaker_state: str = ""  # breaker
    unit: Unit | None = None  # claim: the unit of the current attempt
    earlier: list[Unit] = field(default_factory=list)  # units of earlier attempts that may still answer first
    until: float = 0.0  # timeout: when the current attempt is cut
    may_have_run: bool = False  # retry: an attempt was sent, nobody said that nothing happened; replay: of a joined one

    @property
    def key(self) -> str:
        """The idempotency key as shown."""
        if not self.shown_key:
            self.shown_key = shown_key(self.call)
        return self.shown_key

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

    def honest(self, outcome: Outcome) -> Outcome:
        """What was said last may be a refusal; what an earlier attempt may have done is still true."""
        error = outcome.error
        if error is None or error.sent or not self.sent:
            return outcome
        return replace(outcome, error=replace(error, sent=True))

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
