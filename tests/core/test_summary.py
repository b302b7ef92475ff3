"""Summaries by example: short, one line, and without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.summary import LENGTH_MAX, REDACTED, outcome_summary, summary
from agentgate.model import Outcome, failure


class Hostile(dict[str, str]):
    """A payload whose own code must never run."""

    def items(self) -> Any:
        raise AssertionError

    def __repr__(self) -> str:
        raise AssertionError


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"id": "order_1", "n": 3, "paid": True, "note": None}, '{"id":"order_1","n":3,"paid":true,"note":null}'),
        ("plain", '"plain"'),
        (1.5, "1.5"),
        ([], "[]"),
        ({}, "{}"),
        ((1, "1"), '[1,"1"]'),
        ("a\nb", '"a\\nb"'),
        ("a\u2028\x7f", '"a\\u2028\\x7f"'),
        ("\ud800", '"\\ud800"'),
        ("訂單", '"訂單"'),
        (object(), "<object>"),
        ({"a": [object(), None, False, 10**30]}, '{"a":[<object>,null,false,<int>]}'),
        ({"a": {}, "b": [], "c": {1, 2}, 4: 1.5, "key": "x"}, '{"a":{},"b":[],"c":<set>,"4":1.5,"key":"x"}'),
        (10**5000, "<int>"),
        (nested(100_000), '{"a":[{"a":[{"a":[{"a":[{…}]}]}]}]}'),
        ([[[[[[[[[object()]]]]]]]]], "[[[[[[[[[…]]]]]]]]]"),
    ],
    ids=range(16),
)
def test_a_value_looks_like_json(value: Any, text: str) -> None:
    """H1: a summary shows what was sent, on one line, whatever it is."""
    assert summary(value) == text


@pytest.mark.parametrize(
    "value",
    ["x" * 300, {"a": "x" * 300}, ["ab"] * 100, list(range(100_000)), {str(n): n for n in range(300)}, "\n" * 190],
    ids=range(6),
)
def test_a_long_value_is_cut(value: Any) -> None:
    """H1: two hundred characters and not one more, with a sign that there was more."""
    assert len(summary(value)) == LENGTH_MAX
    assert summary(value).endswith("…")


@pytest.mark.parametrize(
    "name",
    [
        *("password", "PASSWORD", "db_passwd", "passphrase", "pwd", "client_secret", "token", "accessToken", "tokens"),
        *(
            "authorization",
            "Proxy-Authorization",
            "api_key",
            "apiKey",
            "X-API-Key",
            "private_key",
            "cookie",
            "set-cookie",
        ),
        *("aws_access_key", "credentials", "x" * 150 + "password"),
    ],
)
@pytest.mark.parametrize(
    "value", ["hunter2", ["hunter2"], {"inner": "hunter2"}, b"hunter2"], ids=["str", "list", "dict", "bytes"]
)
def test_what_is_under_a_secret_key_is_not_shown(name: str, value: Any) -> None:
    """What newcomers must never meet: a secret in a log, however deep it lies and whatever it is made of."""
    for payload in ({name: value}, {"a": [{name: value}]}, [{"b": 1, name: value}, object()]):
        text = summary(payload)
        assert "hunter2" not in text
        assert REDACTED in text or len(name) > 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer hunter2 and so on", f'"Authorization: Bearer {REDACTED} and so on"'),
        ("bearer hunter2", f'"bearer {REDACTED}"'),
        ("https://host/?token=hunter2&page=1", f'"https://host/?token={REDACTED}&page=1"'),
        ("PASSWORD=hunter2; retry", f'"PASSWORD={REDACTED}; retry"'),
        ('{"api_key": "hunter2"}', f'"{{"api_key": "{REDACTED}"}}"'),
    ],
)
def test_secrets_in_free_text_are_redacted(text: str, shown: str) -> None:
    """Text that says what it gives away is redacted as well, and the rest of it stays readable."""
    assert summary(text) == shown


def test_counts_and_common_words_stay() -> None:
    """A number under `max_tokens` is a count; words that merely contain `key` or `auth` hide nothing."""
    value = {"max_tokens": 512, "tokens_used": 1.5, "author": "Ann", "monkey": "see", "keyboard": 1}
    assert summary(value) == '{"max_tokens":512,"tokens_used":1.5,"author":"Ann","monkey":"see","keyboard":1}'
    assert summary({"token": 512}) == f'{{"token":"{REDACTED}"}}'


def test_no_code_of_a_payload_runs() -> None:
    """An object with methods of its own is shown by the name of its type."""
    assert summary([Hostile(), object()]) == "[<Hostile>,<object>]"


def test_an_outcome_is_its_value_or_its_error() -> None:
    """H1: an answer is summarised by its value, an error by its code and what was said about it."""
    assert outcome_summary(Outcome(value={"a": 1})) == '{"a":1}'
    assert outcome_summary(failure("rejected", detail="out of\nstock")) == "rejected: out of\\nstock"
    assert outcome_summary(failure("deadlock")) == "deadlock"
    assert outcome_summary(failure("handler_error", detail="login: password=hunter2")) == (
        f"handler_error: login: password={REDACTED}"
    )
    assert len(outcome_summary(failure("internal", detail="x" * 10_000))) == LENGTH_MAX
