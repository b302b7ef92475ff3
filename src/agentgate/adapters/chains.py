"""What a chain is, for stores that look through spans themselves."""

from __future__ import annotations

from agentgate.model import Span


def is_named(span: Span, trace_or_key: str) -> bool:
    """Whether a query by trace, key or business key means the trace of this span."""
    return trace_or_key != "" and trace_or_key in (span.trace_id, span.key, span.business_key)
