"""What an interaction leaves behind: one span a call, one child span an attempt."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

SpanKind = Literal["call", "attempt"]


class Span(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One interaction, seen from the gate. Times: `started_at` in seconds since the epoch, durations in ms.

    For a call, `wait_ms` is all the time the caller waited; for an attempt, `gap_ms` is the time since the attempt
    before ended, `queue_ms` the time in the target's queue, `handler_ms` the target's own time as it reported it.
    `unit` is the unit that a call was made in, or the unit that an attempt started.
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
    linked: bool = True
    breaker: str = ""  # the breaker's state when it was asked
    notes: tuple[str, ...] = ()  # would_… decisions of observe mode, progress of the unit
    request: str = ""  # bounded, redacted summaries
    response: str = ""
