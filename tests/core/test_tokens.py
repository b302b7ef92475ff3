"""Tokens: whom a secret speaks for, and until when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentgate.core.tokens import TOKENS_MAX, Token, Tokens, hashed, scope_flaw, token_flaw, written
from agentgate.model import NEIGHBOUR, NOBODY, OBSERVE, OPERATE, SUBMIT, Identity

ID, SECRET = "0" * 12, "a" * 64
TEXT = written(ID, SECRET)
NOW = 1_800_000_000.0


def token_of(token_id: str = ID, secret: str = SECRET, **fields: Any) -> Token:
    base: dict[str, Any] = {"name": "shop", "scopes": (SUBMIT,), "created_at": NOW}
    return Token(id=token_id, sha256=hashed(secret), **(base | fields))


def test_a_token_speaks_for_its_name_in_its_tenant() -> None:
    """I6: the presented secret gives tenant, name and scopes, and the token's id, never the secret."""
    tokens = Tokens([token_of(tenant="blue", scopes=(SUBMIT, "agent:stock"))])
    identity = tokens.identify(TEXT, NOW)
    assert identity == Identity(tenant="blue", name="shop", scopes=frozenset({SUBMIT, "agent:stock"}), token=ID)
    assert SECRET not in repr(identity) + repr(token_of()) + repr(tokens)
    assert hashed(SECRET) not in repr(identity)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agt",
        TEXT[:-1],
        TEXT + "a",
        TEXT + "\n",
        TEXT.upper(),
        " " + TEXT,
        TEXT.replace("agt", "sk"),
        written(ID, "b" + SECRET[1:]),
        written(ID, SECRET[:-1] + "b"),
        written("1" * 12, SECRET),
        written(ID, hashed(SECRET)),
        written("", ""),
        written("\u0661" * 12, SECRET),
    ],
)
def test_any_other_text_is_no_token(text: str) -> None:
    """I6: another secret, an unknown id, the stored hash, or a text of another form speaks for nobody."""
    assert Tokens([token_of()]).identify(text, NOW) is None


@given(st.text())
def test_no_text_harms(text: str) -> None:
    """I6: whatever is presented, the answer is nobody."""
    assert Tokens([token_of()]).identify(text, NOW) is None


def test_an_empty_list_lets_nobody_in() -> None:
    """I6: without any token there is no text that speaks for anybody."""
    assert len(Tokens()) == 0
    assert Tokens().identify(TEXT, NOW) is None
    assert Tokens().identify(written("0" * 12, ""), NOW) is None


def test_a_token_ends_when_it_expires() -> None:
    """I6: up to its last moment a token is valid, from then on it is none; what was identified ends with it."""
    tokens = Tokens([token_of(expires_at=NOW + 10), token_of("1" * 12, expires_at=NOW + 5), token_of("2" * 12)])
    identity = tokens.identify(TEXT, NOW + 9.9)
    assert identity is not None
    assert tokens.stands(identity, NOW + 9.9)
    assert not tokens.stands(identity, NOW + 10)
    assert tokens.identify(TEXT, NOW + 10) is None
    assert [tokens.next_expiry(NOW + later) for later in (0, 5, 10)] == [NOW + 5, NOW + 10, None]


def test_an_identity_stands_as_long_as_its_token() -> None:
    """I6: revoked, or replaced by a token of another right, it stands no longer; nobody never does."""
    tokens = Tokens([token_of()])
    identity = tokens.identify(TEXT, NOW)
    assert identity is not None
    assert Tokens([token_of(), token_of("1" * 12)]).stands(identity, NOW)
    for others in ([], [token_of("1" * 12)], [token_of(scopes=(OBSERVE,))], [token_of(tenant="blue")]):
        assert not Tokens(others).stands(identity, NOW)
    assert not tokens.stands(NOBODY, NOW)
    assert not Tokens().stands(NOBODY, NOW)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"id": "xyz"}, "the token of 'shop' has an id or a hash that no token has"),
        ({"sha256": "abc"}, "has an id or a hash that no token has"),
        ({"tenant": ""}, "tenant '': up to 64 small letters"),
        ({"tenant": "Blue"}, "tenant 'Blue'"),
        ({"tenant": "blue\x1fred"}, "tenant 'blue\\x1fred'"),
        ({"tenant": "b" * 65}, "up to 64"),
        ({"name": ""}, "the name is empty"),
        ({"name": "a\x1fb"}, "the name contains the character U+001F"),
        ({"name": "n" * 201}, "the name has 201 characters"),
        ({"scopes": ()}, "has no scope, so it may do nothing; scopes are submit, operate, observe and agent:NAME"),
        ({"scopes": (SUBMIT, "admin")}, "there is no scope 'admin'; scopes are submit"),
        ({"scopes": ("agent:*",)}, "a token names each agent that it may speak as"),
        ({"scopes": ("agent:a:b",)}, "no agent has ':' in its name"),
        ({"scopes": ("agent:",)}, "the agent of scope 'agent:' is empty"),
        ({"scopes": ("agent:a\nb",)}, "contains the character U+000A"),
    ],
)
def test_a_record_that_cannot_be_is_named(fields: dict[str, Any], sentence: str) -> None:
    """I6: a list with a wrong record is refused as a whole, with a sentence that says what is wrong."""
    wrong = replace(token_of(), **fields)
    assert sentence in (token_flaw(wrong) or "")
    with pytest.raises(ValueError, match=r"[a-z]"):
        Tokens([token_of("9" * 12), wrong])


def test_lists_are_bounded_and_without_twins() -> None:
    """B14: no more tokens than the bound, and no id twice."""
    with pytest.raises(ValueError, match="is there twice"):
        Tokens([token_of(), token_of()])
    with pytest.raises(ValueError, match=f"at most {TOKENS_MAX} are allowed"):
        Tokens([token_of()] * (TOKENS_MAX + 1))


@pytest.mark.parametrize("scope", [SUBMIT, OPERATE, OBSERVE, "agent:stock", "agent:a b", "agent:库存"])
def test_scopes_that_exist(scope: str) -> None:
    """I6: the three words, and an agent by any name that an agent may have."""
    assert scope_flaw(scope) is None


@pytest.mark.parametrize(
    ("identity", "name", "may_call", "may_speak"),
    [
        (NEIGHBOUR, "anybody", True, True),
        (NOBODY, "anybody", False, False),
        (Identity(name="shop", scopes=frozenset({SUBMIT})), "shop", True, False),
        (Identity(name="shop", scopes=frozenset({SUBMIT})), "stock", False, False),
        (Identity(name="shop", scopes=frozenset({OBSERVE, OPERATE})), "shop", False, False),
        (Identity(name="shop", scopes=frozenset({"agent:stock"})), "stock", True, True),
        (Identity(name="shop", scopes=frozenset({"agent:stock"})), "shop", False, False),
    ],
)
def test_an_identity_speaks_as_itself(identity: Identity, name: str, may_call: bool, may_speak: bool) -> None:
    """I6: `submit` is for one's own name, `agent:` for that agent, and neither for anybody else."""
    assert (identity.may_call_as(name), identity.may_speak_as(name)) == (may_call, may_speak)


@pytest.mark.parametrize(
    ("identity", "may_call"),
    [
        (NEIGHBOUR, True),
        (NOBODY, False),
        (Identity(name="shop", scopes=frozenset({SUBMIT})), True),
        (Identity(name="stock", scopes=frozenset({"agent:stock"})), True),
        (Identity(name="stock", scopes=frozenset({"agent:order", OBSERVE})), False),
    ],
)
def test_who_may_call_at_all(identity: Identity, may_call: bool) -> None:
    """I6: whoever has the scope, and an agent as itself."""
    assert identity.may_call() is may_call
