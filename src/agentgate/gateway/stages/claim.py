"""The unit of this attempt; for a keyed call, the right to run it, written before anything is sent.

A claim that was asked for may be granted after its caller has left, or be granted although the store's answer got
lost. Either way the unit was not sent, and saying so frees the key again.

Observed only, a claim that is not granted at once ends nothing: the call goes on with a unit of which the ledger knows
nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from agentgate.errors import StoreError
from agentgate.gateway.entry import SPAN_ID_BYTES
from agentgate.gateway.stages.replay import OBSERVED_S
from agentgate.gateway.units import Unit
from agentgate.model import Claim, Claimed, Outcome, failure, plain
from agentgate.runtime.later import Later, first

if TYPE_CHECKING:
    from agentgate.gateway.flights import Flight
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward

# A store that failed is asked again by callers after this long.
STORE_AGAIN_S = 1.0


class ClaimKey:
    """Opens the unit, and the ledger's record of the key."""

    name: ClassVar[str] = "claim"
    mechanism: ClassVar[str | None] = None
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._observes = parts.mode("idempotency") == "observe"
        self._units = parts.units
        self._ledger = parts.ledger
        self._clock = parts.clock
        self._new_id = parts.new_id
        self._chance = parts.chance

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """Go onward with a unit that may run."""
        slot = passage.slot
        assert slot is not None, "the claim stands behind the slot"
        if passage.flight is not None and passage.flight.is_settled:
            return _lost_race(passage, "an operator has settled the key")
        unit = self._new_unit(passage, slot.instance, passage.flight)
        epoch = 0
        if unit.keyed:
            claimed = await self._claim(passage, unit)
            if isinstance(claimed, Claimed):
                epoch = claimed.record.epoch
            elif self._observes and self._clock.now() < passage.call.deadline:
                self._parts.note(passage, "would_join" if passage.lost_race else "would_store_down")
                passage.lost_race = False
                unit = self._new_unit(passage, slot.instance, None)
            else:
                return claimed
        passage.begin(unit)
        self._units.grant(unit, slot, epoch)
        return await onward(passage)

    def _new_unit(self, passage: Passage, instance: str, flight: Flight | None) -> Unit:
        skill = passage.skill
        unit = Unit(
            self._new_id("u"),
            passage.call,
            instance,
            flight,
            span_id=self._chance.token_hex(SPAN_ID_BYTES),
            output_schema=skill.output_schema if skill is not None else None,
            rests=skill is not None and skill.rests,
            promises=skill.promises if skill is not None else (),
        )
        self._units.add(unit)
        return unit

    async def _claim(self, passage: Passage, unit: Unit) -> Claimed | Outcome:
        try:
            future = self._ledger.claim(_claim_of(passage, unit))
        except StoreError as error:
            self._units.discard(unit)
            return _store_down(error)
        deadline = passage.call.deadline
        try:
            done = await first([future], min(deadline, self._clock.now() + OBSERVED_S) if self._observes else deadline)
        except asyncio.CancelledError:
            self._free_when_known(unit, future)
            raise
        if done is None or self._clock.now() >= deadline:
            self._free_when_known(unit, future)
            return failure("deadline_exceeded", detail="the store took longer than the call had time")
        return self._judge(passage, unit, future)

    def _judge(self, passage: Passage, unit: Unit, future: Later[Claimed]) -> Claimed | Outcome:
        error = future.exception()
        if error is not None:
            self._units.unsent(unit, _store_down(error))
            return _store_down(error)
        claimed = future.result()
        if claimed.granted:
            return claimed
        self._units.discard(unit)
        return _lost_race(passage, "another call of the same key was faster")

    def _free_when_known(self, unit: Unit, future: Later[Claimed]) -> None:
        gone = failure("cancelled", detail="the caller left before it was sent")

        def known(claim: Later[Claimed]) -> None:
            if claim.cancelled() or unit.ended:
                return
            if claim.exception() is None and not claim.result().granted:
                self._units.discard(unit)
            else:
                self._units.unsent(unit, gone)

        future.then(known)


def _lost_race(passage: Passage, why: str) -> Outcome:
    """The call goes back to `replay`, which looks at the key anew."""
    passage.lost_race = True
    return failure("in_progress", detail=why)


def _claim_of(passage: Passage, unit: Unit) -> Claim:
    call, flight = passage.call, passage.flight
    assert flight is not None, "a keyed unit has a flight"
    checked = passage.skill is not None and passage.skill.check
    return Claim(
        key=flight.key,
        fingerprint=flight.fingerprint,
        agent=plain(call.agent),  # its tenant is in the key
        unit=unit.id,
        instance=unit.instance,
        repeatable=call.repeatable,
        again=call.again,
        payload=call.payload if checked else None,
        trace_id=call.trace_id,
        parent_unit=call.parent_unit,
    )


def _store_down(error: BaseException) -> Outcome:
    return failure("store_down", retry_after_s=STORE_AGAIN_S, detail=str(error))
