"""Key parts and body fingerprints by example."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.keys import PART_LENGTH_MAX, check_parts, fingerprint, shown_key, told_key
from agentgate.model import Call, KeyId


def call(**parts: Any) -> Call:
    return Call(**{"id": "c1", "target": "order_agent", "task_type": "confirm", "business_key": "order_1", **parts})


def test_a_key_is_shown_as_its_parts() -> None:
    """C1: the text is caller, task type, business key and action; a call and its identity show the same."""
    made = call(caller="shop", action="retry_mail")
    assert shown_key(made) == shown_key(made.key_id) == "shop:confirm:order_1:retry_mail"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({}, "shop:confirm:order_1:run"),
        ({"task_type": "check:confirm", "effect": "read"}, "shop:confirm:order_1:run"),
        ({"task_type": "degraded:confirm", "effect": "read"}, "shop:confirm:order_1:run"),
        ({"task_type": "check:confirm", "effect": "read", "business_key": ""}, ""),
        ({"task_type": "look", "effect": "read"}, ""),
    ],
)
def test_what_stands_beside_a_write_is_told_its_key(parts: dict[str, Any], told: str) -> None:
    """C4: a check can look for what was written under the key; any other read has none."""
    assert told_key(call(caller="shop", **parts)) == told


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"business_key": "a:b"}, "client:confirm:a%3Ab:run"),
        ({"business_key": "50%"}, "client:confirm:50%25:run"),
        ({"business_key": "a%3Ab"}, "client:confirm:a%253Ab:run"),
        ({"task_type": "check:confirm"}, "client:check%3Aconfirm:order_1:run"),
        ({"business_key": "", "effect": "read"}, "client:confirm::run"),
    ],
)
def test_separators_inside_parts_are_escaped(parts: dict[str, Any], text: str) -> None:
    """A `:` or `%` in a part cannot be taken for a separator or an escape."""
    assert shown_key(call(**parts)) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), (1, "1"), (1.0, "1.0"), (True, 1), (None, "null"), ([], {}), ([1, 2], [2, 1]), ({"a": None}, {})],
)
def test_different_bodies_differ(one: Any, other: Any) -> None:
    """Decision 8: 1, 1.0 and "1" are different bodies, and so is everything else that JSON tells apart."""
    assert fingerprint(one) != fingerprint(other)


def test_key_order_is_no_difference() -> None:
    """Decision 8: objects with the same members are the same body, at every depth."""
    assert fingerprint({"a": 1, "b": {"c": 2, "d": 3}}) == fingerprint({"b": {"d": 3, "c": 2}, "a": 1})


def test_the_fingerprint_never_changes() -> None:
    """Records outlive a release, so the hash of a body is pinned."""
    assert fingerprint({"sku": "A-7", "n": 3}) == "5f741641a875c7c0139b68371e73d3d8"


def test_proper_parts_pass() -> None:
    """Names in any script pass, also with spaces, and a read needs no business key."""
    assert check_parts(call(business_key="訂單 №1\u00a0b")) is None
    assert check_parts(call(business_key="", effect="read")) is None
    assert check_parts(call(business_key="x" * PART_LENGTH_MAX)) is None


@pytest.mark.parametrize(
    ("parts", "detail"),
    [
        ({"business_key": ""}, "business_key is empty: a call that is not declared a read needs one"),
        ({"business_key": " \t"}, "business_key is empty"),
        ({"target": ""}, "target is empty"),
        ({"task_type": " "}, "task_type is empty"),
        ({"action": ""}, "action is empty"),
        ({"caller": ""}, "caller is empty"),
        ({"tenant": ""}, "tenant is empty"),
        ({"user": "  "}, "user is empty"),
        ({"user": "a\u2028"}, "user contains the character U+2028"),
        ({"business_key": "x" * 201}, "business_key has 201 characters; at most 200 are allowed"),
        ({"action": "a\nb"}, "action contains the character U+000A"),
        ({"business_key": "a\x00"}, "business_key contains the character U+0000"),
        ({"task_type": "\x7f"}, "task_type contains the character U+007F"),
        ({"caller": "a\u2028"}, "caller contains the character U+2028"),
        ({"target": "a\ud800"}, "target contains the character U+D800"),
        ({"business_key": "\n", "effect": "read"}, "business_key contains the character U+000A"),
    ],
)
def test_improper_parts_are_named(parts: dict[str, Any], detail: str) -> None:
    """C1: a wrong part is a `bad_request` that says which one and why, and is never repeated."""
    found = check_parts(call(**parts))
    assert found is not None
    assert (found.code, found.fault, found.retry) == ("bad_request", "caller", "never")
    assert detail in found.detail


def test_the_identity_has_more_than_the_text() -> None:
    """Tenant and target tell keys apart that are shown alike."""
    one = KeyId("t1", "a", "c", "t", "b", "run")
    assert shown_key(one) == shown_key(one._replace(tenant="t2", target="z"))
    assert one != one._replace(tenant="t2")
