"""Asks the target whether an effect happened, when nobody else can tell (DESIGN 4.2).

The check of a skill is a read of the same agent, `check:<task_type>`, given the payload that the claim has stored. It
goes through the gate like any call. A value means: it happened, and this is its answer. Null means: it did not, and
the key is free. Anything else leaves the key unknown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from agentgate.core.bounded import BoundedMap
from agentgate.errors import StoreError
from agentgate.gateway.answers import unknown
from agentgate.model import Call, Change, KeyId, Outcome, Record, check_type, failure
from agentgate.runtime.later import first

if TYPE_CHECKING:
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.ledger import Ledger
    from agentgate.gateway.options import CallOptions
    from agentgate.ports.clock import Clock
    from agentgate.ports.routes import Routes

log = structlog.get_logger(__name__)

# Unknown keys whose last check is remembered; a forgotten one is merely asked again sooner.
ASKED_MAX: Final = 10_000


class Checks:
    """What is known about keys whose outcome got lost."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        routes: Routes,
        clock: Clock,
        counters: Counters,
        options: CallOptions,
        call: Callable[[Call], Awaitable[Outcome]],
        new_id: Callable[[str], str],
    ) -> None:
        self._ledger = ledger
        self._routes = routes
        self._clock = clock
        self._counters = counters
        self._options = options
        self._call = call
        self._new_id = new_id
        self._asked_at: BoundedMap[KeyId, float] = BoundedMap(ASKED_MAX)

    async def ask(self, call: Call, record: Record | None = None, how: str = "") -> Outcome | None:
        """The key's outcome, or None: it is known that nothing happened, the call may run. `how` its run was lost."""
        if record is None:
            record = await self._look_up(call)
        if record is None:
            return None
        if record.outcome is not None:
            return replace(record.outcome, replayed=True, first_seen_at=record.first_seen_at)
        if record.state != "unknown" or not self._may_ask(record):
            return unknown(record, how)
        self._asked_at[record.key] = self._clock.now()
        self._counters.checks += 1
        answer = await self._call(self._check_of(call, record))
        if not answer.ok:
            found = f"its check came to {answer.code}"
            return unknown(record, f"{how}; {found}" if how else found)
        return await self._settle(call, record, answer)

    def _may_ask(self, record: Record) -> bool:
        if not record.agent:
            return False
        route = self._routes.resolve(record.key.tenant, record.agent)
        skill = route.card.skill(record.key.task_type) if route is not None else None
        if skill is None or not skill.check:
            return False
        asked_at = self._asked_at.get(record.key)
        return asked_at is None or self._clock.now() - asked_at >= self._options.check_interval_s

    async def _look_up(self, call: Call) -> Record | None:
        """The record; while the store does not say, what is known is that nobody knows."""
        try:
            future = self._ledger.lookup(call.key_id)
            if await first([future], call.deadline) is not None:
                return future.result()
        except StoreError as error:
            log.warning("check_without_store", error=str(error))
        return Record(key=call.key_id, state="unknown", epoch=0, fingerprint="", agent="")

    def _check_of(self, call: Call, record: Record) -> Call:
        """The check as a call: of the same caller, in the same chain, within the same deadline."""
        return Call(
            id=self._new_id("c"),
            target=record.agent,
            task_type=check_type(record.key.task_type),
            business_key=record.key.business_key,
            action=record.key.action,
            payload=record.payload,
            effect="read",
            priority=call.priority,
            tenant=call.tenant,
            caller=call.caller,
            user=call.user,
            received_at=self._clock.now(),
            deadline=call.deadline,
            trace_id=call.trace_id,
            parent_span_id=call.span_id,
            parent_unit=call.parent_unit,
            depth=call.depth,
        )

    async def _settle(self, call: Call, record: Record, answer: Outcome) -> Outcome | None:
        happened = answer.value is not None
        change = Change(
            key=record.key,
            epoch=record.epoch,
            unit="",
            event="done" if happened else "not_done",
            outcome=Outcome(value=answer.value) if happened else None,
        )
        written = self._ledger.report(change)
        if await first([written], call.deadline) is None:
            return failure("deadline_exceeded", sent=True, detail="the store took longer than the call had time")
        left = written.result().record
        if left is None:
            self._asked_at[record.key] = -inf  # that was a clear answer; a new run is a new question
            return None
        return unknown(left) if left.outcome is None else replace(left.outcome, first_seen_at=left.first_seen_at)
