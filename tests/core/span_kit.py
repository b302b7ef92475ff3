"""Spans as a gate would have left them, by the handful."""

from __future__ import annotations

from typing import Any

from agentgate.core.backoff import BackoffOptions
from agentgate.core.breaker import BreakerOptions
from agentgate.core.policy import Mode
from agentgate.core.rate import RateOptions
from agentgate.core.recorded import Recorded
from agentgate.core.suggest import Current, Suggestions, suggest
from agentgate.core.timeout import TimeoutOptions
from agentgate.model import Span

ENFORCED: dict[str, Mode] = dict.fromkeys(
    (
        "rate_limit", "chain_guard", "idempotency", "cool_down", "concurrency", "circuit_breaker", "dynamic_timeout",
        "retry",
    ),
    "enforce",
)  # fmt: skip


def call(number: int = 0, *, at: float | None = None, **fields: Any) -> Span:
    given = {"kind": "call", "agent": "bank", "attempts": 1, "caller": "shop", "task_type": "pay", **fields}
    started_at = float(number) if at is None else at
    return Span(
        trace_id=f"t{number}", span_id=f"c{number}", call_id=f"c{number}", target="bank", started_at=started_at, **given
    )


def attempt(number: int = 0, took_ms: float = 100.0, *, at: float | None = None, **fields: Any) -> Span:
    given = {"kind": "attempt", "agent": "bank", "instance": "bank-1", "caller": "shop", "task_type": "pay", **fields}
    started_at = float(number) if at is None else at
    wait_ms = took_ms + given.get("queue_ms", 0.0)
    return Span(
        trace_id=f"t{number}",
        span_id=f"a{number}",
        call_id=f"c{number}",
        target="bank",
        started_at=started_at,
        wait_ms=wait_ms,
        **given,
    )


def recorded(*spans: Span) -> Recorded:
    found = Recorded(60.0)
    found.add(spans)
    return found


def suggested(*spans: Span, modes: dict[str, Mode] | None = None, **options: Any) -> Suggestions:
    current: dict[str, Any] = {
        "timeout": TimeoutOptions(),
        "breaker": BreakerOptions(),
        "rate": RateOptions(),
        "retry": BackoffOptions(),
        "root_deadline_s": 30.0,
        **options,
    }
    return suggest(recorded(*spans), Current(modes={**ENFORCED, **(modes or {})}, **current))


def proposed(found: Suggestions) -> dict[str, float | str]:
    return {proposal.key: proposal.proposed for proposal in found.proposals}


def silent(found: Suggestions) -> dict[str, str]:
    return {silence.subject: silence.why for silence in found.silent}
