"""Payloads by example: what passes, and the sentence for everything that does not."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from agentgate.core.payload import PayloadOptions, check_value, decode
from agentgate.errors import WireError

OPTIONS = PayloadOptions()


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"id":"o1","n":3}', {"id": "o1", "n": 3}),
        (b" null ", None),
        (b"1.0", 1.0),
        ('"\u20ac \U0001f600"'.encode(), "\u20ac \U0001f600"),
        (rb'"\ud83d\ude00"', "\U0001f600"),
        (rb'"\\u0000"', "\\u0000"),
        (rb'"\\\\u0000 NaN Infinity"', "\\\\u0000 NaN Infinity"),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b'"' + b"[" * 500 + b'"', "[" * 500),
        (b"[" + b"[]," * 99 + b"[]]", [[]] * 100),
        (b"[" * 64 + b"]" * 64, None),
    ],
)
def test_plain_json_passes(raw: bytes, value: Any) -> None:
    """What JSON can say within the bounds is decoded as it is, the text of a NUL escape included."""
    decoded = decode(raw, OPTIONS)
    assert check_value(decoded, OPTIONS) is None
    assert value is None or decoded == value


@pytest.mark.parametrize(
    ("raw", "detail"),
    [
        (b"", "not valid JSON: Input data was truncated"),
        (b'{"a":', "not valid JSON: Input data was truncated"),
        (b"{'a':1}", "not valid JSON"),
        (b'{"NaN":1, NaN:2}', "NaN or an infinity"),
        (b"[1,]", "not valid JSON: JSON is malformed: trailing comma"),
        (b'"a\nb"', "not valid JSON: JSON is malformed: invalid character"),
        (b'"\xff"', "not valid UTF-8 at byte 1"),
        (b'"\xed\xa0\x80"', "not valid UTF-8"),
        (b"\xff", "not valid UTF-8 at byte 0"),
        (b'"a\x00b"', "NUL character"),
        (b"1\x00", "NUL character"),
        (rb'"a\u0000b"', "NUL character"),
        (rb'{"a\u0000":1}', "NUL character"),
        (rb'"\\\u0000"', "NUL character"),
        (b"NaN", "NaN or an infinity"),
        (b"[1, NaN]", "NaN or an infinity"),
        (b'{"a":-Infinity}', "NaN or an infinity"),
        (b"Infinity", "NaN or an infinity"),
        (b"1e999", "number beyond the range"),
        (b"1" * 5000, "number beyond the range"),
        (rb'"\ud800"', "lone surrogate"),
        (rb'"\ud800 and more"', "lone surrogate"),
        (rb'"\udc00"', "lone surrogate"),
        (rb'"\ud83d\ude00', "not valid JSON: Input data was truncated"),
        (b"[" * 65 + b"]" * 65, "nested deeper than 64 levels"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nested deeper than 64 levels"),
        (b"[" * 200_000, "nested deeper than 64 levels"),
        (b'[{"a":' * 40_000, "nested deeper than 64 levels"),
        (b'{"a":1} x', "something follows the end"),
        (b"1 2", "something follows the end"),
    ],
)
def test_everything_else_is_refused_with_its_reason(raw: bytes, detail: str) -> None:
    """FAILURES kind 13: each flaw is a `bad_request` with a sentence of its own."""
    with pytest.raises(WireError) as raised:
        decode(raw, OPTIONS)
    assert raised.value.code == "bad_request"
    assert detail in raised.value.detail


def test_a_payload_above_the_limit_is_too_large() -> None:
    """Size is checked before anything is read, on the bytes as they came."""
    options = PayloadOptions(bytes_max=10)
    assert decode(b'"12345678"', options) == "12345678"
    with pytest.raises(WireError, match="11 bytes; at most 10") as raised:
        decode(b'"123456789"', options)
    assert raised.value.code == "too_large"


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        (nan, "NaN or an infinity"),
        ({"a": [1, -inf]}, "NaN or an infinity"),
        ([None, (nan,)], "NaN or an infinity"),
        ("a\x00", "NUL character"),
        ({"\x00": 1}, "NUL character"),
        ("\ud800", "lone surrogate"),
        ({"a": object()}, "not plain JSON"),
        ({1: 2}, "not plain JSON"),
        (nested(65), "nested deeper than 64 levels"),
        (nested(100_000), "nested deeper than 64 levels"),
        (circle(), "nested deeper than 64 levels"),
    ],
)
def test_a_decoded_value_is_judged_alike(value: Any, detail: str) -> None:
    """FAILURES kind 13: a value that came another way than through `decode` gets the same answer, as a problem."""
    found = check_value(value, OPTIONS)
    assert found is not None
    assert (found.code, found.fault) == ("bad_request", "caller")
    assert detail in found.detail


def test_a_number_of_thousands_of_digits_is_no_payload() -> None:
    """An integer that the interpreter will not write out is refused, not raised about."""
    found = check_value({"n": 10**5000}, OPTIONS)
    assert found is not None
    assert "not plain JSON" in found.detail


def test_a_decoded_value_has_a_size_too() -> None:
    """Its size is that of its JSON text; null is no flaw, and the text of an escape is none."""
    options = PayloadOptions(bytes_max=10)
    assert check_value([None, 1.5], options) is None
    assert check_value("\\u0000", PayloadOptions()) is None
    found = check_value("123456789", options)
    assert found is not None
    assert (found.code, found.detail) == ("too_large", "the payload has 11 bytes; at most 10 are allowed")


@pytest.mark.parametrize(
    ("field", "value"),
    [("bytes_max", 1), ("bytes_max", 1_048_577), ("depth_max", 0), ("depth_max", 201), ("depth_max", nan)],
)
def test_options_out_of_range_are_refused(field: str, value: float) -> None:
    """A limit that cannot be kept is refused when it is read, naming the field and what is allowed."""
    with pytest.raises(ValueError, match=f"{field} must be a number from"):
        PayloadOptions(**{field: value})  # type: ignore[arg-type]  # a wrong value is the point
