"""The outermost stage: whatever happens inside, the call ends with one outcome, one span, and is counted once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

import structlog
from msgspec.structs import replace

from agentgate.gateway.spans import call_span
from agentgate.model import DEFAULT_TENANT, Outcome, failure, told

if TYPE_CHECKING:
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward

log = structlog.get_logger(__name__)


class Trace:
    """Records what the call came to."""

    name: ClassVar[str] = "trace"
    mechanism: ClassVar[str | None] = "tracing"
    stays: ClassVar[bool] = True  # switched off, it records nothing, and still turns a defect into an answer

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._traces = parts.mode("tracing") != "off"

    async def __call__(self, passage: Passage, onward: Onward) -> Outcome:
        """Go onward; never raise anything but the cancellation of the caller."""
        self._parts.counters.calls += 1
        try:
            outcome = await onward(passage)
        except asyncio.CancelledError:
            self._record(passage, failure("cancelled", sent=passage.sent))
            raise
        except Exception:
            log.exception("call_failed_inside", trace_id=passage.call.trace_id, call_id=passage.call.id)
            outcome = failure("internal", sent=passage.sent, detail=f"trace {passage.call.trace_id}")
        if passage.call.keyed:
            outcome = replace(outcome, key=passage.key)
        outcome = in_plain_words(passage.call.tenant, outcome)
        self._record(passage, outcome)
        return outcome

    def _record(self, passage: Passage, outcome: Outcome) -> None:
        self._parts.counters.outcomes[outcome.code] += 1
        if self._traces:
            self._parts.spans.record(call_span(passage, outcome, self._parts.clock.now()))


def in_plain_words(tenant: str, outcome: Outcome) -> Outcome:
    """The outcome as it leaves the gate: the one place where the names in the sentences of policies become plain."""
    if outcome.error is None or tenant == DEFAULT_TENANT:
        return outcome
    return replace(outcome, error=replace(outcome.error, detail=told(tenant, outcome.error.detail)))
