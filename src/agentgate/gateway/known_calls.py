"""What is known of keyed calls afterwards, and the operator's word about those whose outcome got lost.

Asked for a key, in this order: does it run here, does the ledger have it, was it turned away lately after its caller
had been told to ask again later. Whoever waits for a running one is woken by its end; nobody polls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agentgate.core.bounded import BoundedMap
from agentgate.errors import StoreBroke
from agentgate.gateway.answers import unknown
from agentgate.model import Change, KeyId, LedgerEvent, Outcome, Problem, Record, RecordState, problem
from agentgate.runtime.later import Later, first

if TYPE_CHECKING:
    from agentgate.gateway.flights import Flights
    from agentgate.gateway.front import FrontCall
    from agentgate.gateway.ledger import Ledger
    from agentgate.ports.clock import Clock

T = TypeVar("T")

STORE_S: Final = 5.0  # for the store to say what it has
TOLD_MAX: Final = 10_000
TOLD_S: Final = 300.0  # whoever was told to ask again has done so by then
ASK_AGAIN_S: Final = 1.0

# What an operator can do about a call that needs no settling, by the state of its record.
NOT_LOST: Final = {
    "done": "There is nothing to settle: whoever repeats the key gets its answer, which `agentgate calls show` has. "
    "A second effect on the same object needs its own `action`.",
    "failed": "There is nothing to settle: whoever repeats the key is told this failure, which `agentgate calls "
    "show` has. Once the cause is gone, a call of the same key with `again` runs it anew.",
}
FREE: Final = "There is nothing to settle: the key is free, and the next call with it runs. See `agentgate calls list`."


class Known(Struct, frozen=True, kw_only=True):
    """What a key has come to; without an outcome it runs, and `state` says how far it is, if this gate runs it."""

    outcome: Outcome | None = None
    trace_id: str = ""
    state: str = ""


class _Told(NamedTuple):
    known: Known
    at: float


class KnownCalls:
    """Answers for keyed calls by their keys."""

    def __init__(self, flights: Flights, ledger: Ledger, clock: Clock) -> None:
        self._flights = flights
        self._ledger = ledger
        self._clock = clock
        self._accepted: dict[KeyId, FrontCall] = {}  # open ones, so that their number is that of the front
        self._told: BoundedMap[KeyId, _Told] = BoundedMap(TOLD_MAX)

    def accept(self, call: FrontCall) -> None:
        """This caller was told to ask again later: its call is known from now on, also while it has no record."""
        key = call.passage.call.key_id
        self._accepted[key] = call
        call.ended.then(lambda ended: self._end(key, call, ended.result()))

    async def find(self, key: KeyId, until: float, sooner: Later[None] | None = None) -> Known | None:
        """What became of a key, waiting for its end, but not after `until` (monotonic), or after `sooner` has ended.

        None: nothing is known of it. Raises `StoreError`.
        """
        while True:
            end = self._end_of(key)
            if end is not None:
                if (released := self._released(key)) is not None:
                    return released
                if await first([end] if sooner is None else [end, sooner], until) is not end:
                    return self._running(key)
                continue
            record = await self._soon(self._ledger.lookup(key))
            # Somebody may run it by now: an operator has freed a key that was lost, and those who waited go on with it.
            if self._end_of(key) is None or (record is not None and record.outcome is not None):
                break
        if record is not None:
            return _of_record(record)
        told = self._told.get(key)
        return told.known if told is not None and self._clock.now() - told.at < TOLD_S else None

    async def list_records(
        self, tenant: str, target: str, state: RecordState | None, after: KeyId | None, limit: int
    ) -> list[Record]:
        """A page of a tenant's records, of one target and state if they are given, without what makes them large.

        Raises `StoreError`.
        """
        first_key = KeyId(tenant, target, "", "", "", "")
        # No name contains a NUL, so this comes right behind everything that begins like the first key.
        beyond = first_key._replace(target=target + "\0") if target else KeyId(tenant + "\0", "", "", "", "", "")
        return await self._ledger.list_records(max(first_key, after or first_key), beyond, state, limit)

    async def settle(self, key: KeyId, event: LedgerEvent, outcome: Outcome | None) -> Problem | None:
        """Take an operator's word for what a lost call came to; the answer is why it does not count, if so.

        Raises `StoreError`.
        """
        record = await self._soon(self._ledger.lookup(key))
        refusal = self._refusal(key, record)
        if refusal is not None or record is None:
            return refusal
        word = Change(key=key, epoch=record.epoch, unit="", event=event, outcome=outcome)
        changed = await self._soon(self._ledger.report(word))
        if not changed.accepted:
            return self._refusal(key, changed.record)
        flight = self._flights.get(key)
        if flight is not None:
            flight.settled()
        return None

    def _refusal(self, key: KeyId, record: Record | None) -> Problem | None:
        flight = self._flights.get(key)
        if record is None and flight is None:
            return replace(problem("not_found", detail="the ledger has no record of this call"), advice=FREE)
        if record is None or record.state == "running" or (flight is not None and flight.units):
            state = flight.state() if flight is not None else "its outcome is being written down"
            detail = f"only a call whose outcome is unknown can be settled; this one runs: {state}"
            return problem("in_progress", retry_after_s=ASK_AGAIN_S, detail=detail)
        if record.state != "unknown":
            detail = f"only a call whose outcome is unknown can be settled; this one is {record.state} already"
            return replace(problem("version_conflict", detail=detail), advice=NOT_LOST[record.state])
        return None

    async def _soon(self, answer: Later[T]) -> T:
        if await first([answer], self._clock.now() + STORE_S) is None:
            raise StoreBroke(f"the store has not answered within {STORE_S:g} s")
        return answer.result()

    def _end_of(self, key: KeyId) -> Later[Outcome] | Later[None] | None:
        flight = self._flights.get(key)
        if flight is not None:
            return flight.over()
        call = self._accepted.get(key)
        return call.ended if call is not None else None

    def _released(self, key: KeyId) -> Known | None:
        """What was said when its unit was given up, as long as that has not answered after all."""
        flight = self._flights.get(key)
        return Known(outcome=flight.released) if flight is not None and flight.released is not None else None

    def _running(self, key: KeyId) -> Known:
        flight, call = self._flights.get(key), self._accepted.get(key)
        state = flight.state() if flight is not None else "it waits for its turn"
        return Known(state=state, trace_id=call.passage.call.trace_id if call is not None else "")

    def _end(self, key: KeyId, call: FrontCall, outcome: Outcome) -> None:
        if self._accepted.get(key) is call:
            del self._accepted[key]
        self._told.sweep(self._clock.now(), TOLD_S)
        if outcome.error is not None:  # a value has its record
            known = Known(outcome=outcome, trace_id=call.passage.call.trace_id)
            self._told[key] = _Told(known, self._clock.now())


def _of_record(record: Record) -> Known:
    if record.state == "running":  # another gateway runs it, or this one is still writing down how its run ended
        return Known(trace_id=record.trace_id, state="its outcome is being written down")
    if record.outcome is None:
        return Known(outcome=unknown(record), trace_id=record.trace_id)
    outcome = replace(record.outcome, replayed=True, first_seen_at=record.first_seen_at)
    return Known(outcome=outcome, trace_id=record.trace_id)
