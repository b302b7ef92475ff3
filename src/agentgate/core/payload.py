"""Which payloads may travel: small, shallow, plain JSON; everything else is refused with the reason.

A payload that a store, a log or a target's parser cannot take must be refused at the entrance, where its sender can
still be told (FAILURES kind 13). What is refused, each with its own sentence: too large (`too_large`), and, as
`bad_request`: not UTF-8, NUL characters (raw or as the escape), NaN and infinity, numbers beyond range, lone
surrogates, too deep, something after the end, and malformed JSON of any other kind.

How it works. The JSON decoder is strict already; it runs first, and only what it lets through is looked for: a search
in the text for the escape of NUL (preceded by an even number of backslashes; the escape after an odd number is the
text of a backslash and `u0000`), and a walk for depth only when the text has more opening brackets than `depth_max`,
brackets in strings included. When the decoder refuses, nobody is in a hurry: the bytes are examined for what was
wrong. A value that was decoded elsewhere is judged by its encoded text in the same way. The encoder writes NaN and
infinity as `null`, so they are looked for, in the value, when its text contains one. Walks go level by level and use
no recursion.

Not covered: the size of a whole frame (the link), and what a skill's schema says (preflight).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder

from agentgate.core.ranges import require
from agentgate.errors import WireError
from agentgate.model import Problem, problem

BYTES_CEILING: Final = 1_048_576  # 1 MiB: above it a message is a document, and travels by context id
DEPTH_CEILING: Final = 200  # a fifth of the interpreter's own limit, which every recursive reader downstream shares


@dataclass(frozen=True, kw_only=True)
class PayloadOptions:
    """How large and how deep a payload may be."""

    # 256 KiB: a thousand of them in flight still fit in memory, and no message delays its neighbours by milliseconds.
    bytes_max: int = 262_144
    # Nested lists and objects. People write 10 at most, generated schemas about 30.
    depth_max: int = 64

    def __post_init__(self) -> None:
        require(self, "bytes_max", low=2, high=BYTES_CEILING)
        require(self, "depth_max", low=1, high=DEPTH_CEILING)


_decode: Final = Decoder().decode
_encode: Final = Encoder(order="sorted").encode  # as `core.keys` will: it refuses keys that are not strings

_CONTAINERS: Final = frozenset({list, dict, tuple})  # a set look-up: a payload may hold 100 000 of them
_ESCAPED_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_HALF_AT_THE_END: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}[^\\]{0,5}\Z")
_NOT_A_NUMBER: Final = re.compile(rb"NaN|Infinity")
_WHERE: Final = re.compile(r"\(byte (\d+)\)")

_HAS_NUL: Final = "the payload contains a NUL character, which databases and many programs cannot store"
_NOT_FINITE: Final = "the payload contains NaN or an infinity, which JSON cannot express; send null or a string"
_SURROGATE: Final = "the payload contains a lone surrogate, which is half a character; send the whole character"


def decode(raw: bytes, options: PayloadOptions) -> Any:
    """The value of a JSON text; raises `WireError`, whose code is `too_large` or `bad_request`."""
    if len(raw) > options.bytes_max:
        raise WireError(_too_large(len(raw), options), code="too_large")
    try:
        value = _decode(raw)
    except (MsgspecError, RecursionError) as error:
        raise WireError(reason(raw, error, options)) from None
    found = flaw(raw, value, options)
    if found is not None:
        raise WireError(found)
    return value


def check_value(value: Any, options: PayloadOptions) -> Problem | None:
    """What is wrong with a value that was decoded elsewhere, its encoded size included."""
    try:
        raw = _encode(value)
    except RecursionError:
        return problem("bad_request", detail=_too_deep(options))
    except UnicodeEncodeError:
        return problem("bad_request", detail=_SURROGATE)
    except (TypeError, ValueError, OverflowError) as error:
        return problem("bad_request", detail=f"the payload is not plain JSON: {error}")
    if len(raw) > options.bytes_max:
        return problem("too_large", detail=_too_large(len(raw), options))
    found = flaw(raw, value, options)
    if found is None and b"null" in raw and _has_non_finite(value):
        found = _NOT_FINITE
    return None if found is None else problem("bad_request", detail=found)


def flaw(raw: bytes, value: Any, options: PayloadOptions) -> str | None:
    """What a strict decoder lets through and the platform does not; `raw` may be a message around the value."""
    if b"\\u0000" in raw and _ESCAPED_NUL.search(raw) is not None:
        return _HAS_NUL
    if raw.count(b"[") + raw.count(b"{") > options.depth_max and _is_deeper(value, options.depth_max):
        return _too_deep(options)
    return None


def reason(raw: bytes, error: Exception, options: PayloadOptions) -> str:
    """A sentence for bytes that a strict decoder refused, the most telling cause first."""
    if isinstance(error, RecursionError):
        return _too_deep(options)
    try:
        raw.decode()
    except UnicodeDecodeError as found:
        return f"the payload is not valid UTF-8 at byte {found.start}"
    if b"\x00" in raw:
        return _HAS_NUL
    text = str(error)
    if "trailing characters" in text:
        return f"something follows the end of the JSON value: {text}"
    if "out of range" in text:
        return "the payload contains a number beyond the range of a double; send it as a string"
    if "surrogate" in text or ("truncated" in text and _HALF_AT_THE_END.search(raw) is not None):
        return _SURROGATE
    if (place := _WHERE.search(text)) is not None and _NOT_A_NUMBER.match(raw, int(place[1])) is not None:
        return _NOT_FINITE
    return f"the payload is not valid JSON: {text}"


def _levels(value: Any) -> Iterator[list[Any]]:
    """The containers of a value, level by level."""
    level = [value] if type(value) in _CONTAINERS else []
    while level:
        yield level
        level = [item for parent in level for item in _items(parent) if type(item) in _CONTAINERS]


def _items(container: Any) -> Any:
    return container.values() if type(container) is dict else container


def _is_deeper(value: Any, depth_max: int) -> bool:
    return any(depth > depth_max for depth, _ in enumerate(_levels(value), 1))


def _has_non_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not isfinite(value)
    return any(
        isinstance(item, float) and not isfinite(item)
        for level in _levels(value)
        for parent in level
        for item in _items(parent)
    )


def _too_large(size: int, options: PayloadOptions) -> str:
    return f"the payload has {size} bytes; at most {options.bytes_max} are allowed"


def _too_deep(options: PayloadOptions) -> str:
    return f"the payload is nested deeper than {options.depth_max} levels"
