"""Spans in memory, the newest of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from agentgate.adapters import chains
from agentgate.model import DEFAULT_TENANT, Span, in_order, unfolded

SPANS_MAX: Final = 100_000  # about 100 MB; the demo leaves some thousands


class MemorySpanStore:
    """Keeps the newest spans; `sweep` has nothing to do, the bound does it."""

    def __init__(self, spans_max: int = SPANS_MAX) -> None:
        self._spans: deque[Span] = deque(maxlen=spans_max)

    async def open(self) -> None:
        """Nothing to make ready."""

    async def close(self) -> None:
        """Nothing to let go of; the spans stay for whoever looks at them afterwards."""

    async def write(self, spans: Sequence[Span]) -> None:
        """Append finished spans."""
        self._spans.extend(spans)

    async def chain(self, trace_or_key: str, limit: int, tenant: str = DEFAULT_TENANT) -> list[Span]:
        """The tenant's spans of one trace, or of the traces in which a key or business key occurs."""
        own = [span for span in self._spans if span.tenant == tenant]
        traces = {span.trace_id for span in own if chains.is_named(span, trace_or_key, tenant)}
        return sorted((span for span in own if span.trace_id in traces), key=in_order)[:limit]

    async def sweep(self, now: float) -> int:  # noqa: ARG002 - the port's signature
        """Nothing is kept in files."""
        return 0

    @property
    def spans(self) -> tuple[Span, ...]:
        """Everything that is there, in the order it was written, as it is shown."""
        return tuple(shown for span in self._spans for shown in unfolded(span))
