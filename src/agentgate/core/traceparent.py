"""W3C trace context: the `traceparent` header, version 00.

Decides whether a text names a trace. The rules are strict, because the header comes from outside and becomes a key:

- `00-<32 hex>-<16 hex>-<2 hex>`, lower case, nothing before or after; an id of only zeros is none.
- Whatever is not that is no trace: the call starts a new one. A bad header is never an error, for it is not the
  caller's business to have one.

Not covered: `tracestate`, which this gate neither reads nor changes, and later versions of the header.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FORM: Final = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NO_TRACE: Final = "0" * 32
_NO_SPAN: Final = "0" * 16
_SAMPLED: Final = 1  # the only flag of version 00


class TraceParent(NamedTuple):
    """The chain a call belongs to, and the span it was made in."""

    trace_id: str
    span_id: str
    sampled: bool = True


def parse_traceparent(text: str) -> TraceParent | None:
    """The trace that a header names, or None."""
    found = _FORM.fullmatch(text)
    if found is None or found[1] == _NO_TRACE or found[2] == _NO_SPAN:
        return None
    return TraceParent(found[1], found[2], bool(int(found[3], 16) & _SAMPLED))


def format_traceparent(trace_id: str, span_id: str, *, sampled: bool = True) -> str:
    """The header for these ids, which must be lower-case hexadecimal of 32 and 16 digits."""
    return f"00-{trace_id}-{span_id}-0{int(sampled)}"
