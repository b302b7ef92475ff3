"""Hands a unit to its process, with all that its handler is told, and a token that says what it is part of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgate.core.keys import told_key
from agentgate.core.traceparent import format_traceparent
from agentgate.core.unit_token import UnitClaim
from agentgate.model.link import InvokeParams

if TYPE_CHECKING:
    from agentgate.core.unit_token import UnitTokens
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.reach import Reach
    from agentgate.gateway.units import Unit
    from agentgate.ports.clock import Clock


class Invoke:
    """Called with a unit, it sends it off; False: its process is not connected."""

    def __init__(self, tokens: UnitTokens, reach: Reach, clock: Clock, counters: Counters) -> None:
        self._tokens = tokens
        self._reach = reach
        self._clock = clock
        self._counters = counters

    def __call__(self, unit: Unit) -> bool:
        """Send it to the instance that has its slot."""
        call = unit.call
        self._counters.messages += 1
        token = self._tokens.issue(
            UnitClaim(unit.id, call.parent_unit, call.trace_id, call.depth, unit.epoch, call.user)
        )
        params = InvokeParams(
            task_type=call.task_type,
            caller=call.caller,
            payload=call.payload,
            business_key=call.business_key,
            action=call.action,
            effect=call.effect,
            key=told_key(call),
            remaining_ms=max(0, int((call.deadline - self._clock.now()) * 1000)),
            token=token,
            traceparent=format_traceparent(call.trace_id, unit.span_id),
            attempt=call.attempt,
            unrecorded=call.keyed and not unit.keyed,
        )
        return self._reach.invoke(unit, params)
