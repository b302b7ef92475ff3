"""What a chain is, for stores that look through spans themselves."""

from __future__ import annotations

from agentgate.model import Span


def is_named(span: Span, trace_or_key: str, tenant: str) -> bool:
    """Whether a tenant's query by trace, key or business key means the trace of this span."""
    if trace_or_key == "" or span.tenant != tenant:
        return False
    return trace_or_key in (span.trace_id, span.key, span.business_key)
