"""Spans on disk: the asynchronous face of `SpanFiles`.

A flush is stored as one block of JSON, with the names that occur in it; a query reads the blocks in which a name may
occur and looks through their spans. Names are those of their tenant, and stored as short hashes: two names that share
one cost a block that is read in vain.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import structlog

from agentgate.adapters import chains
from agentgate.adapters.sqlite.reopening import Reopening
from agentgate.adapters.sqlite.span_files import BROKEN, DAY_S, SpanFiles
from agentgate.errors import StoreBadInput
from agentgate.model import DEFAULT_TENANT, Span, in_order, qualified
from agentgate.runtime.runner import Runner

log = structlog.get_logger(__name__)

KEEP_DAYS: Final = 7  # a week to ask what happened on Monday; a busy day may be some gigabytes
BLOCKS_MAX: Final = 500  # that one query reads; at 64 spans each, thirty times what it may return
TRACES_MAX: Final = 200  # that one key may lead to

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[Span])


@dataclass(frozen=True, kw_only=True)
class SpanFilesOptions:
    """How many full days spans are kept beside the current one."""

    keep_days: int = KEEP_DAYS

    def __post_init__(self) -> None:
        if self.keep_days < 1:
            raise ValueError(f"keep_days must be at least 1, not {self.keep_days}")


class SqliteSpanStore:
    """Spans in files of their own, one a day."""

    def __init__(self, directory: Path, runner: Runner, options: SpanFilesOptions | None = None) -> None:
        self._directory = str(directory)
        self._runner = runner
        self._options = options or SpanFilesOptions()
        self._files = Reopening(runner, self._start)

    async def open(self) -> None:
        """Make the directory ready."""
        await self._files.open()

    async def close(self) -> None:
        """Let go of the files."""
        await self._files.close(SpanFiles.close)

    async def write(self, spans: Sequence[Span]) -> None:
        """Append finished spans, each to the day it started on."""
        for day in sorted({span.started_at // DAY_S for span in spans}):
            block = [span for span in spans if span.started_at // DAY_S == day]
            try:
                text = _ENCODER.encode(block).decode()
            except (TypeError, ValueError) as error:
                raise StoreBadInput(f"a span cannot be stored: {error}") from error
            if await self._files.ask(SpanFiles.write, int(day), text, " ".join(_names(block))):
                log.warning("span_file_damaged", directory=self._directory, kept_as=BROKEN)

    async def chain(self, trace_or_key: str, limit: int, tenant: str = DEFAULT_TENANT) -> list[Span]:
        """The tenant's spans of one trace, or of the traces in which a key or business key occurs, by their start."""
        named = await self._read(tenant, [trace_or_key])
        traces = {span.trace_id: None for span in named if chains.is_named(span, trace_or_key, tenant)}
        found = await self._read(tenant, list(traces)[:TRACES_MAX])
        spans = {span.span_id: span for span in found if span.tenant == tenant and span.trace_id in traces}
        return sorted(spans.values(), key=in_order)[:limit]

    async def sweep(self, now: float) -> int:
        """Delete the files of days beyond the retention time."""
        return await self._files.ask(SpanFiles.sweep, int(now // DAY_S) - self._options.keep_days)

    async def _start(self) -> None:
        await self._runner.start(SpanFiles, self._directory)
        await self._runner.run(SpanFiles.open)

    async def _read(self, tenant: str, names: Sequence[str]) -> list[Span]:
        """All spans of the blocks in which one of the tenant's names may occur."""
        blocks = await self._files.ask(SpanFiles.read, [_hashed(tenant, name) for name in names], BLOCKS_MAX)
        return [span for block in blocks for span in _DECODER.decode(block)]


def _names(spans: Iterable[Span]) -> set[str]:
    """The names that occur in some spans, hashed."""
    names = {(span.tenant, name) for span in spans for name in (span.trace_id, span.key, span.business_key)}
    return {_hashed(tenant, name) for tenant, name in names if name}


def _hashed(tenant: str, name: str) -> str:
    """Eight hexadecimal digits: one word of the index, whatever is in the name."""
    return f"{zlib.crc32(qualified(tenant, name).encode(errors='replace')):08x}"
