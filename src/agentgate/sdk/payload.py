"""Values on their way into JSON: what cannot be stored or read by everybody is refused here, with a sentence.

Refused are: values without a JSON form, NaN and infinity (msgspec would write `null`), NUL and lone surrogates in text,
nesting deeper than 64, and more bytes than the gate takes (DESIGN 4.5). The checks read the encoded bytes, so that a
value without oddities costs one encoding and a few scans.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

DEPTH_MAX: Final = 64
BYTES_MAX: Final = 262_144  # until the gate's welcome names its own limit

_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"')


class ValueDefect(Exception):
    """The value cannot travel; `code` is `malformed_output` (say which and where) or `too_large`."""

    def __init__(self, detail: str, *, code: str = "malformed_output") -> None:
        super().__init__(detail)
        self.code = code


def checked_json(value: Any, bytes_max: int) -> msgspec.Raw:
    """The JSON of a value; raises `ValueDefect`, which says what is wrong and where."""
    try:
        raw = _encoder.encode(value)
    except Exception as error:
        raise ValueDefect(_unencodable(value, error)) from error
    if len(raw) > bytes_max:
        raise ValueDefect(
            f"{len(raw)} bytes of JSON, at most {bytes_max} may travel; send an id instead of the content",
            code="too_large",
        )
    if b"\\u0000" in raw and _NUL.search(raw):
        raise ValueDefect("text with a NUL character cannot be stored")
    if raw.count(b"[") + raw.count(b"{") > DEPTH_MAX and _depth(raw) > DEPTH_MAX:
        raise ValueDefect(f"nested deeper than {DEPTH_MAX}")
    if b"null" in raw and (where := _not_finite(value)) is not None:
        raise ValueDefect(f"NaN and infinity have no JSON form - at `{where}`")
    return msgspec.Raw(raw)


def to_json_type(value: Any) -> Any:
    """How types that msgspec does not know are written: models of pydantic."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise TypeError(f"a {type(value).__name__} has no JSON form")
    return dump(mode="json")


_encoder = msgspec.json.Encoder(enc_hook=to_json_type)


def _unencodable(value: Any, error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"nested deeper than {DEPTH_MAX}, or containing itself"
    what = "text with a lone surrogate is not Unicode" if isinstance(error, UnicodeError) else str(error)
    return f"{what} - at `{_first_bad(value, '$', 0)}`"


def _first_bad(value: Any, path: str, depth: int) -> str:
    """The path to the first part that cannot be encoded (only asked for when something cannot)."""
    if depth < DEPTH_MAX:
        for name, part in _parts(value):
            try:
                _encoder.encode(part)
            except Exception:  # noqa: BLE001 - any failure means that the defect is in this part
                return _first_bad(part, path + name, depth + 1)
    return path


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f".{key}", part) for key, part in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from ((f"[{place}]", part) for place, part in enumerate(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((f".{field.name}", getattr(value, field.name)) for field in dataclasses.fields(value))
    elif isinstance(value, msgspec.Struct):
        yield from ((f".{name}", getattr(value, name)) for name in value.__struct_fields__)


def _not_finite(value: Any) -> str | None:
    """The path to the first float that is no number."""
    open_parts: list[tuple[str, Any]] = [("$", msgspec.to_builtins(value, enc_hook=to_json_type))]
    while open_parts:
        path, part = open_parts.pop()
        if isinstance(part, float):
            if not math.isfinite(part):
                return path
        else:
            open_parts.extend((path + name, inner) for name, inner in _parts(part))
    return None


def _depth(raw: bytes) -> int:
    deepest = depth = 0
    for byte in _TEXT.sub(b"", raw):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest
