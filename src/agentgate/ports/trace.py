"""Where finished spans go, and where they are asked for."""

from __future__ import annotations

from typing import Protocol

from agentgate.model import Span


class SpanSink(Protocol):
    """Takes spans without waiting; bounded, and counts what it has to drop."""

    def record(self, span: Span) -> None:
        """Keep a finished span."""
        ...

    async def chain(self, trace_or_key: str, limit: int = 1000) -> list[Span]:
        """The spans of one trace, or of the traces in which a key occurs."""
        ...
