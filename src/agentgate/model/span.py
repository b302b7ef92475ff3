"""What an interaction leaves behind: one span a call, one child span an attempt."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

SpanKind = Literal["call", "attempt"]


class LastAttempt(Struct, frozen=True, kw_only=True, array_like=True):
    """What the span of a call's last attempt says beyond the call's own; the names are those of `Span`."""

    span_id: str
    instance: str
    unit: str
    attempt: int
    started_at: float
    wait_ms: float
    gap_ms: float
    queue_ms: float
    timeout_ms: float | None
    notes: tuple[str, ...]


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One interaction, seen from the gate. Times: `started_at` in seconds since the epoch, durations in ms.

    For a call, `wait_ms` is all the time the caller waited; for an attempt, `gap_ms` is the time since the attempt
    before ended, `queue_ms` the time in the target's queue, `handler_ms` the target's own time as it reported it.
    `unit` is the unit that a call was made in, or the unit that an attempt started. An attempt that ended its call
    well says nearly the same as the call: it travels in the call's span, as `last`, until `unfolded` makes two of it.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    kind: SpanKind
    call_id: str
    tenant: str = "default"
    caller: str
    user: str = ""  # left out where it is the caller
    target: str
    agent: str = ""
    instance: str = ""
    unit: str = ""
    task_type: str
    business_key: str = ""
    action: str = "run"
    key: str = ""
    effect: str = "write"
    attempt: int = 0
    attempts: int = 0
    started_at: float
    wait_ms: float = 0.0
    gap_ms: float = 0.0
    queue_ms: float = 0.0
    handler_ms: float | None = None
    timeout_ms: float | None = None
    status: str = "done"
    code: str = ""
    fault: str = ""
    detail: str = ""
    sent: bool = False
    replayed: bool = False
    joined: bool = False
    degraded: bool = False  # the answer is the degraded handler's
    linked: bool = True
    breaker: str = ""  # the breaker's state when it was asked
    notes: tuple[str, ...] = ()  # would_… decisions of observe mode, progress of the unit
    request: str = ""  # bounded, redacted summaries
    response: str = ""
    last: LastAttempt | None = None


def unfolded(span: Span) -> tuple[Span, ...]:
    """The span as it is shown: a call, and its last attempt if that travelled in it."""
    last = span.last
    if last is None:
        return (span,)
    attempt = Span(
        kind="attempt",
        trace_id=span.trace_id,
        span_id=last.span_id,
        parent_id=span.span_id,
        call_id=span.call_id,
        tenant=span.tenant,
        caller=span.caller,
        target=span.target,
        agent=span.agent,
        instance=last.instance,
        unit=last.unit,
        task_type=span.task_type,
        business_key=span.business_key,
        action=span.action,
        effect=span.effect,
        attempt=last.attempt,
        started_at=last.started_at,
        wait_ms=last.wait_ms,
        gap_ms=last.gap_ms,
        queue_ms=last.queue_ms,
        handler_ms=span.handler_ms,
        timeout_ms=last.timeout_ms,
        sent=True,
        breaker=span.breaker,
        notes=last.notes,
    )
    return replace(span, last=None), attempt


def in_order(span: Span) -> tuple[float, int, str]:
    """The order of a chain: by start; a call before its attempts, which start in the same instant."""
    return span.started_at, span.attempt, span.span_id
