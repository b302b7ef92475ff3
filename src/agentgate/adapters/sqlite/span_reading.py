"""Reads the files of spans from outside, the newest first, also while a gate writes them.

SQLite's log lets one process write and others read. A page is one short read, so a checkpoint never waits for long;
nothing is written, and the index of names is not asked.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from agentgate.adapters.sqlite import statements
from agentgate.adapters.sqlite.span_files import DAY_S, DAY_ZERO, PREFIX, SUFFIX
from agentgate.errors import StoreBroke
from agentgate.model import Span, unfolded

PAGE: Final = 100  # blocks of up to 64 spans: some MB
LATE_S: Final = 3600.0  # a block is written when its calls end; they may have begun so long before
BUSY_S: Final = 5.0
ID_MAX: Final = 2**63 - 1

SQL: Final = statements.load("spans.sql")
_DECODER: Final = msgspec.json.Decoder(list[Span])


def read_spans(directory: Path, since: float, limit: int) -> Iterator[list[Span]]:
    """Spans that began at `since` (seconds since the epoch) or later, some at a time, the newest first.

    Not more than `limit`. Raises `StoreBroke` when there are no files, or one cannot be read.
    """
    first_day = dt.date.fromordinal(int(since // DAY_S) + DAY_ZERO).isoformat()
    files = sorted(directory.glob(f"{PREFIX}*{SUFFIX}"), reverse=True)
    if not files:
        raise StoreBroke(f"{directory}: there are no spans; has a gate with this store taken calls?")
    left = limit
    for file in files:
        if file.name < f"{PREFIX}{first_day}" or left <= 0:
            return
        for page in _pages(file):
            spans = [span for span in page if span.started_at >= since][:left]
            left -= len(spans)
            yield spans
            if left <= 0 or max(span.started_at for span in page) < since - LATE_S:
                break


def _pages(file: Path) -> Iterator[list[Span]]:
    try:
        with contextlib.closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", timeout=BUSY_S, uri=True)
        ) as base:
            before = ID_MAX
            while rows := base.execute(SQL["read_page"], (before, PAGE)).fetchall():
                before = rows[-1][0]
                blocks = (reversed(_DECODER.decode(block)) for _, block in rows)
                yield [shown for spans in blocks for span in spans for shown in unfolded(span)]
    except (sqlite3.Error, msgspec.DecodeError) as error:
        raise StoreBroke(f"{file}: {error}") from error
