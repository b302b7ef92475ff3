"""What holds for every key and every body."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.keys import check_parts, fingerprint, shown_key
from agentgate.model import Call, KeyId

PARTS = st.tuples(*[st.text(alphabet="a:%32A5", max_size=4)] * 4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def key(parts: tuple[str, ...]) -> KeyId:
    return KeyId("default", "target", *parts)


@given(PARTS, PARTS)
def test_different_parts_never_look_the_same(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """C1: two keys have one text only if all parts of the text are equal."""
    assert (shown_key(key(one)) == shown_key(key(other))) == (one == other)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reversed_keys(value[name]) for name in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(JSON)
def test_a_body_is_the_same_however_it_is_written(body: Any) -> None:
    """Decision 8: neither key order nor a way through spaced-out JSON text changes the fingerprint."""
    rewritten = json.loads(json.dumps(reversed_keys(body), indent=3))
    assert fingerprint(rewritten) == fingerprint(body)


@given(JSON, JSON)
def test_bodies_that_json_tells_apart_differ(one: Any, other: Any) -> None:
    """Decision 8: equal fingerprints mean equal canonical JSON."""
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (fingerprint(one) == fingerprint(other)) == same


@given(st.text(), st.text(), st.sampled_from(["read", "write"]))
def test_what_passes_is_one_line(task_type: str, business_key: str, effect: Any) -> None:
    """Accepted parts are bounded, encodable, and a shown key never breaks a line."""
    call = Call(id="c", target="t", task_type=task_type, business_key=business_key, effect=effect)
    if check_parts(call) is None:
        text = shown_key(call)
        assert len(text.splitlines()) == 1
        assert len(text.encode()) <= 4 * 3 * 4 * 200
        assert call.business_key or effect == "read"
