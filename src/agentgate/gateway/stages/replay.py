"""Looks a key up before anything is charged: answered from the ledger, joined in flight, or the first of its kind.

Reads skip it. What a caller gets for a key that is taken: the stored outcome, the running flight's outcome, or a
refusal that says why (another body, a flight it did not want to wait for, an outcome nobody knows).

Observed only, nobody is answered, refused or kept waiting: a call whose key is taken goes on without a record, marked
with what it would have got; so does one that the store does not answer at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace

from agentgate.core.keys import fingerprint
from agentgate.errors import StoreError
from agentgate.gateway.flights import RECHECK, TAKE_OVER, Flight
from agentgate.model import Call, KeyId, Outcome, Record, failure
from agentgate.runtime.later import first

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward

STORE_AGAIN_S = 1.0
FLIGHTS_AGAIN_S = 1.0
RUNNING_AGAIN_S = 1.0
OBSERVED_S = 0.25  # observe mode: for the store to answer; ten times what a busy one takes


class Replay:
    """One key, one run, one answer."""

    name: ClassVar[str] = "replay"
    mechanism: ClassVar[str | None] = "idempotency"
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._flights = parts.flights
        self._ledger = parts.ledger
        self._observes = parts.mode(self.mechanism) == "observe"

    def __call__(self, passage: Passage, onward: Onward) -> Awaitable[Outcome]:
        """Answer a repeat, or go onward as the owner of the key's flight; with a read there is nothing to look up."""
        return self._once(passage, onward) if passage.call.keyed else onward(passage)

    async def _once(self, passage: Passage, onward: Onward) -> Outcome:
        body = fingerprint(passage.call.payload)
        key = passage.call.key_id
        if self._observes:
            return passage.honest(await self._observed(key, passage, body, onward))
        while True:
            flight = self._flights.get(key)
            if flight is None:
                outcome = await self._first(key, passage, body, onward)
            else:
                outcome = await self._join(flight, passage, body, onward)
            if outcome is not None:
                return passage.honest(outcome)

    async def _observed(self, key: KeyId, passage: Passage, body: str, onward: Onward) -> Outcome:
        """Go onward whatever is known of the key; as the owner of its flight, and with a record, if it is free."""
        flight = self._flights.get(key)
        if flight is None and not self._flights.full:
            flight = self._flights.open(key, body, passage)
            try:
                would = await self._would(key, passage, body)
            except BaseException:
                flight.leave(passage, None)
                raise
            if not would:
                self._note_twins(passage.call, body)
                passage.flight = flight
                outcome = await self._own(flight, passage, onward)
                assert outcome is not None, "observing, the claim goes on after a lost race"
                return outcome
            flight.leave(passage, None)
        elif flight is None:
            would = "would_overload_keys"
        else:
            would = "would_join" if flight.fingerprint == body else "would_conflict"
        self._parts.note(passage, would)
        return await onward(passage)

    async def _would(self, key: KeyId, passage: Passage, body: str) -> str:
        """What the record of the key would have meant; empty: nothing stands in the way."""
        try:
            future = self._ledger.lookup(key)
            done = await first([future], min(passage.call.deadline, self._parts.clock.now() + OBSERVED_S))
            record = future.result() if done is not None else None
        except StoreError:
            return "would_store_down"
        if record is None:
            return "" if done is not None else "would_store_down"
        if record.fingerprint != body:
            return "would_conflict"
        if record.state == "running":
            return "would_join"
        return "" if record.state == "failed" and passage.call.again else "would_replay"

    async def _join(self, flight: Flight, passage: Passage, body: str, onward: Onward) -> Outcome | None:
        if flight.fingerprint != body:
            return failure("key_conflict", detail=f"{passage.key} is running with another body")
        if flight.released is not None and flight.released.degraded:
            return replace(flight.released, joined=True)
        if flight.released is not None or not passage.call.join:
            return failure("in_progress", retry_after_s=RUNNING_AGAIN_S, detail=flight.state())
        passage.joined = flight
        try:
            if self._parts.closes_knot(passage, "join") is not None:
                detail = f"{flight.state()}; waiting for it would close a cycle of waits"
                return failure("in_progress", retry_after_s=RUNNING_AGAIN_S, detail=detail)
            end = await flight.join(passage)
        except asyncio.CancelledError:
            passage.may_have_run = passage.may_have_run or flight.sent  # what it waited for
            raise
        finally:
            passage.joined = None
            self._parts.waits.moved_on(passage)
        if end == TAKE_OVER:
            passage.flight = flight
            passage.call = replace(passage.call, place=flight.place)
            return await self._own(flight, passage, onward)
        if end == RECHECK:
            return None
        if end is None:
            return failure("deadline_exceeded", sent=flight.sent, detail="the same key was still at work")
        assert isinstance(end, Outcome)
        self._parts.counters.joins += 1
        return replace(end, joined=True)

    async def _first(self, key: KeyId, passage: Passage, body: str, onward: Onward) -> Outcome | None:
        if self._flights.full:
            detail = f"{self._flights.limit} keys are at work, which is the bound"
            return failure("overloaded", retry_after_s=FLIGHTS_AGAIN_S, detail=detail)
        flight = passage.flight = self._flights.open(key, body, passage)
        try:
            known = await self._look_up(key, passage, body)
        except BaseException:
            flight.leave(passage, None)
            raise
        if known is not None:
            is_settled = _is_settled_meanwhile(flight, known)
            flight.leave(passage, known)  # whoever joined meanwhile has the same body, so this is their answer too
            return None if is_settled else known
        self._note_twins(passage.call, body)
        outcome = await self._own(flight, passage, onward)
        if outcome is not None:
            self._parts.policies.duplicates.ended(passage.call, body, outcome)
        return outcome

    def _note_twins(self, call: Call, body: str) -> None:
        """The first call of its key; perhaps not the first of its effect."""
        keys = self._parts.policies.duplicates.note(call, body, self._parts.clock.now())
        if keys is not None:
            subject = f"{call.caller} > {call.target}.{call.task_type}"
            self._parts.findings.report("duplicate_parameters", subject, tenant=call.tenant, keys=keys)

    async def _own(self, flight: Flight, passage: Passage, onward: Onward) -> Outcome | None:
        """Go onward as the owner; None when the key is to be looked up anew."""
        try:
            outcome = await onward(passage)
        except BaseException:
            flight.leave(passage, None)
            raise
        if passage.lost_race:
            passage.lost_race = False
            passage.flight = None
            flight.recheck(passage)
            return None
        is_settled = _is_settled_meanwhile(flight, outcome)
        flight.leave(passage, outcome)
        return None if is_settled else outcome

    async def _look_up(self, key: KeyId, passage: Passage, body: str) -> Outcome | None:
        """What the ledger says about the key, if that ends the call; None: go on."""
        try:
            future = self._ledger.lookup(key)
            done = await first([future], passage.call.deadline)
            record = future.result() if done is not None else None
        except StoreError as error:
            return failure("store_down", retry_after_s=STORE_AGAIN_S, detail=str(error))
        if done is None:
            return failure("deadline_exceeded", detail="the store took longer than the call had time")
        return None if record is None else await self._by_record(passage, body, record)

    async def _by_record(self, passage: Passage, body: str, record: Record) -> Outcome | None:
        call = passage.call
        if record.fingerprint != body:
            return failure("key_conflict", detail=f"{passage.key} was used with another body")
        if record.state == "unknown":
            return await self._parts.checks.ask(call, record)
        if record.state == "running":
            # Another gateway runs it, or this one is still writing down how its run ended.
            return failure("in_progress", retry_after_s=RUNNING_AGAIN_S, detail=f"{passage.key} is at work")
        if record.state == "failed" and call.again:
            return None
        self._parts.counters.replays += 1
        assert record.outcome is not None, "a settled record keeps its outcome"
        return replace(record.outcome, replayed=True, first_seen_at=record.first_seen_at)


def _is_settled_meanwhile(flight: Flight, outcome: Outcome) -> bool:
    """Whether nobody could tell this call what became of the key, and an operator has said so meanwhile."""
    return flight.is_settled and outcome.code == "outcome_unknown"
