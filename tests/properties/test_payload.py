"""Payloads against the standard library, and against anything at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.keys import fingerprint
from agentgate.core.payload import PayloadOptions, check_value, decode
from agentgate.errors import WireError

OPTIONS = PayloadOptions(depth_max=5)
TEXT = st.text(alphabet=st.sampled_from('\\u0ab"\x00[{\u20ac'), max_size=8)
JSON = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=20,
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def has_nul(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_nul(name) or has_nul(item) for name, item in value.items())
    return any(map(has_nul, value)) if isinstance(value, list) else isinstance(value, str) and "\x00" in value


@given(JSON, st.booleans())
def test_json_is_accepted_unless_too_deep_or_with_nul(value: Any, ascii_only: bool) -> None:
    """However it is escaped, JSON is refused for its depth or a NUL and for nothing else, on both ways in."""
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    flawed = has_nul(value) or depth(value) > OPTIONS.depth_max
    assert (check_value(value, OPTIONS) is not None) == flawed
    if flawed:
        with pytest.raises(WireError, match=r"NUL|deeper"):
            decode(raw, OPTIONS)
    else:
        assert decode(raw, OPTIONS) == value


def refusal(raw: bytes) -> WireError | None:
    try:
        decode(raw, OPTIONS)
    except WireError as error:
        return error
    return None


@given(st.binary(max_size=60) | st.text(alphabet='[]{}",:\\ud8NaInfty01e.- \x00', max_size=60).map(str.encode))
def test_any_bytes_give_a_value_or_a_wire_error(raw: bytes) -> None:
    """Nothing but `WireError` comes out of any bytes, and what passes has a fingerprint."""
    error = refusal(raw)
    if error is not None:
        assert error.detail
        assert error.detail.isprintable()
    else:
        value = decode(raw, OPTIONS)
        assert check_value(value, OPTIONS) is None
        assert fingerprint(value)
