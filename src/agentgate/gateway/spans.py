"""The spans that a call leaves: one for the call, one child for each attempt.

The attempt that ends its call well travels in the call's span (`Span.last`): nearly every call has just that one, and
a span costs a tenth of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgate.core.summary import summary
from agentgate.model import LastAttempt, Outcome, Span, plain, told

if TYPE_CHECKING:
    from agentgate.gateway.passage import Passage


def call_span(passage: Passage, outcome: Outcome, now: float) -> Span:
    """The whole call, from its entry to its outcome."""
    call, error, unit = passage.call, outcome.error, passage.unit
    code, fault, detail = ("", "", "") if error is None else (error.code, error.fault, error.detail)
    return Span(
        kind="call",
        trace_id=call.trace_id,
        span_id=call.span_id,
        parent_id=call.parent_span_id,
        call_id=call.id,
        tenant=call.tenant,
        caller=call.caller,
        user=call.user if call.user != call.caller else "",
        target=call.target,
        agent=plain(call.agent),
        task_type=call.task_type,
        business_key=call.business_key,
        action=call.action,
        key=passage.key if call.keyed else "",
        effect=call.effect,
        unit=call.parent_unit,
        attempts=passage.attempts,
        started_at=passage.started_wall,
        wait_ms=_ms(now - call.received_at),
        handler_ms=unit.handler_ms if unit is not None else None,
        status=outcome.status,
        code=code,
        fault=fault,
        detail=detail,
        sent=passage.attempts > 0 if error is None else error.sent,
        replayed=outcome.replayed,
        joined=outcome.joined,
        degraded=outcome.degraded,
        linked=call.linked,
        breaker=passage.breaker_state,
        notes=tuple(passage.notes),
        request=summary(call.payload),
        response=summary(outcome.value) if error is None else "",
        last=passage.last_attempt,
    )


def attempt_span(passage: Passage, outcome: Outcome, began: float, now: float) -> Span:
    """One dispatch; its unit may go on after it."""
    call, error, unit = passage.call, outcome.error, passage.unit
    code, fault, detail = ("", "", "") if error is None else (error.code, error.fault, told(call.tenant, error.detail))
    assert unit is not None, "an attempt span is the span of a unit"
    return Span(
        kind="attempt",
        trace_id=call.trace_id,
        span_id=unit.span_id,
        parent_id=call.span_id,
        call_id=call.id,
        tenant=call.tenant,
        caller=call.caller,
        target=call.target,
        agent=plain(call.agent),
        instance=plain(unit.instance),
        unit=unit.id,
        task_type=call.task_type,
        business_key=call.business_key,
        action=call.action,
        effect=call.effect,
        attempt=call.attempt,
        started_at=passage.started_wall + (began - call.received_at),
        wait_ms=_ms(now - began),
        gap_ms=_ms(passage.gap_s),
        queue_ms=_ms(passage.queued_s),
        handler_ms=unit.handler_ms,
        timeout_ms=_ms(unit.plan.timeout_s) if unit.plan is not None else None,
        status=outcome.status,
        code=code,
        fault=fault,
        detail=detail,
        sent=unit.sent,
        breaker=passage.breaker_state,
        notes=tuple(unit.notes),
    )


def last_attempt(passage: Passage, began: float, now: float) -> LastAttempt:
    """The dispatch that ended its call well."""
    call, unit = passage.call, passage.unit
    assert unit is not None, "an attempt that ended well had a unit"
    return LastAttempt(
        span_id=unit.span_id,
        instance=plain(unit.instance),
        unit=unit.id,
        attempt=call.attempt,
        started_at=passage.started_wall + (began - call.received_at),
        wait_ms=_ms(now - began),
        gap_ms=_ms(passage.gap_s),
        queue_ms=_ms(passage.queued_s),
        timeout_ms=_ms(unit.plan.timeout_s) if unit.plan is not None else None,
        notes=tuple(unit.notes),
    )


def _ms(seconds: float) -> float:
    return int(seconds * 1_000_000) / 1000
