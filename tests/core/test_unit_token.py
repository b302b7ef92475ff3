"""Unit tokens: what was issued reads back, and nothing else reads at all."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgate.core.unit_token import UnitClaim, UnitTokens

TOKENS = UnitTokens(b"0123456789abcdef0123456789abcdef")
CLAIM = UnitClaim("u" * 16, "p" * 16, "f" * 32, 3, 1)
URL_SAFE = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")

names = st.text(max_size=40)
numbers = st.integers(0, 2**31)


@given(st.builds(UnitClaim, names, names, names, numbers, numbers))
def test_a_token_says_what_was_claimed(claim: UnitClaim) -> None:
    """Any ids, whatever their characters, come back as they were, in URL-safe text."""
    token = TOKENS.issue(claim)
    assert TOKENS.read(token) == claim
    assert set(token) <= URL_SAFE


def test_a_token_is_short() -> None:
    """With the ids that the gate makes it fits a header with room to spare."""
    assert len(TOKENS.issue(CLAIM)) <= 130


def test_tokens_survive_a_restart() -> None:
    """The same secret reads them, without any memory."""
    assert UnitTokens(b"0123456789abcdef0123456789abcdef").read(TOKENS.issue(CLAIM)) == CLAIM


def test_another_secret_reads_nothing() -> None:
    """A token of another store, or a forged one, is none."""
    assert UnitTokens(b"another secret of a gate").read(TOKENS.issue(CLAIM)) is None


@pytest.mark.parametrize("position", range(len(TOKENS.issue(CLAIM))))
def test_every_changed_character_is_noticed(position: int) -> None:
    """There is one way to write a token: no character can be changed, left out or added."""
    token = TOKENS.issue(CLAIM)
    for changed in ("A", "-", "=", "é", "\n", ""):
        forged = token[:position] + changed + token[position + 1 :]
        assert TOKENS.read(forged) == (CLAIM if forged == token else None)
    assert TOKENS.read(token[:position] + "A" + token[position:]) is None


@given(st.one_of(st.text(max_size=200), st.text("AZaz09-_=", max_size=200)))
@example("")
@example("=" * 1000)
@example("A" * 1_000_000)
@example("\ud800" * 100)
def test_garbage_never_raises(text: str) -> None:
    """I6: whatever is presented as a token, the answer is a claim or None."""
    assert TOKENS.read(text) is None


def test_a_short_secret_is_refused() -> None:
    """A secret that could be guessed makes tokens that could be forged."""
    with pytest.raises(ValueError, match="at least 16"):
        UnitTokens(b"short")
