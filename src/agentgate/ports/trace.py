"""Where finished spans go, and where they are asked for."""

from __future__ import annotations

from typing import Protocol

from agentgate.model import DEFAULT_TENANT, Span


class SpanSink(Protocol):
    """Takes spans without waiting; bounded, and counts what it has to drop."""

    def record(self, span: Span) -> None:
        """Keep a finished span."""
        ...

    async def chain(self, trace_or_key: str, limit: int = 1000, tenant: str = DEFAULT_TENANT) -> list[Span]:
        """The tenant's spans of one trace, or of the traces in which a key occurs."""
        ...
