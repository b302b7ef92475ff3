"""Tokens of callers: whom a secret speaks for, and what it may do.

Decides which identity a presented text stands for, or none. The rules:

- A token is `agt_<id>_<secret>`, 12 and 64 hexadecimal digits. The id finds the record, the secret proves the right to
  it; any other text is no token. There is one way to write each.
- Of the secret only its SHA-256 is kept. A slow hash protects secrets that people choose, because these can be
  guessed; a secret of 256 random bits cannot, so a slow hash would add nothing but its cost to every request.
- Hashes are compared in constant time, for an unknown id with a hash that nothing has: how long an answer takes says
  neither how much of a secret was right nor whether an id exists.
- A token is bound to a tenant and a name, and says what it may do by scopes: `agent:<name>` (register, serve and call
  as that agent), `submit` (call under the token's own name), `operate`, `observe`. There is no `agent:*`: whoever may
  be every agent makes it worthless to know which one has spoken.
- An expired token is none. `now` is wall seconds since the epoch. A token never changes; another right is another
  token, so an identity holds as long as its token is there and has not expired.

How it works. One dictionary by id, made anew when the list of tokens changes. At most `TOKENS_MAX` tokens.

Not covered: where tokens are kept (`server.token_file`), and which scope a request needs (the routes and the link).
Tokens of units, which handlers send along, are another matter (`core.unit_token`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from msgspec import Struct

from agentgate.core.keys import name_flaw
from agentgate.model import AGENT_SCOPE, DEFAULT_TENANT, SCOPES, Identity

PREFIX: Final = "agt"  # so that a scanner for leaked secrets can find one
ID_BYTES: Final = 6
SECRET_BYTES: Final = 32
TOKENS_MAX: Final = 10_000  # far more than agents; the file is read as a whole
EVERY_AGENT: Final = "*"

TOKEN: Final = re.compile(rf"{PREFIX}_([0-9a-f]{{{2 * ID_BYTES}}})_([0-9a-f]{{{2 * SECRET_BYTES}}})", re.ASCII)
SCOPES_KNOWN: Final = f"scopes are {', '.join(SCOPES)} and {AGENT_SCOPE}NAME"
TENANT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


class Token(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a token. Times in wall seconds since the epoch."""

    id: str
    name: str
    tenant: str = DEFAULT_TENANT
    scopes: tuple[str, ...]
    sha256: str  # of the secret
    created_at: float
    expires_at: float | None = None

    def is_over(self, now: float) -> bool:
        """Whether it has expired."""
        return self.expires_at is not None and now >= self.expires_at

    @property
    def identity(self) -> Identity:
        """Whom it speaks for."""
        return Identity(tenant=self.tenant, name=self.name, scopes=frozenset(self.scopes), token=self.id)


def hashed(secret: str) -> str:
    """What is kept of a secret."""
    return sha256(secret.encode()).hexdigest()


def written(token_id: str, secret: str) -> str:
    """The token as it is handed out, once."""
    return f"{PREFIX}_{token_id}_{secret}"


def token_flaw(token: Token) -> str | None:
    """What is wrong with a token's record, as a sentence."""
    if not TOKEN.fullmatch(written(token.id, token.sha256)):
        return f"the token of {token.name[:80]!r} has an id or a hash that no token has"
    if not TENANT.fullmatch(token.tenant):
        return (
            f"tenant {token.tenant[:80]!r}: up to 64 small letters, digits, '.', '_' and '-', a letter or digit first"
        )
    flaw = name_flaw("the name", token.name)
    if flaw is not None:
        return flaw
    if not token.scopes:
        return f"the token of {token.name!r} has no scope, so it may do nothing; {SCOPES_KNOWN}"
    return next((flaw for flaw in map(scope_flaw, token.scopes) if flaw is not None), None)


def scope_flaw(scope: str) -> str | None:
    """What is wrong with a scope, as a sentence."""
    if scope in SCOPES:
        return None
    if not scope.startswith(AGENT_SCOPE):
        return f"there is no scope {scope[:80]!r}; {SCOPES_KNOWN}"
    agent = scope.removeprefix(AGENT_SCOPE)
    if agent == EVERY_AGENT:
        return f"there is no scope {scope!r}: a token names each agent that it may speak as"
    if ":" in agent:
        return f"scope {scope[:80]!r}: no agent has ':' in its name"
    return name_flaw(f"the agent of scope {scope[:80]!r}", agent)


_NOBODY: Final = Token(id="", name="", scopes=(), sha256=hashed(""), created_at=0.0, expires_at=0.0)


class Tokens:
    """The tokens that are valid until they expire; raises `ValueError` with a sentence for a list that cannot be."""

    __slots__ = ("_by_id",)

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        listed = list(tokens)
        if len(listed) > TOKENS_MAX:
            raise ValueError(f"there are {len(listed)} tokens, at most {TOKENS_MAX} are allowed")
        for flaw in map(token_flaw, listed):
            if flaw is not None:
                raise ValueError(flaw)
        counts = Counter(token.id for token in listed)
        if twice := [token_id for token_id, count in counts.items() if count > 1]:
            raise ValueError(f"the token {twice[0]!r} is there twice")
        self._by_id = {token.id: (token, token.identity) for token in listed}

    def __len__(self) -> int:
        return len(self._by_id)

    def identify(self, text: str, now: float) -> Identity | None:
        """Whom this text speaks for; None if it is not a valid token."""
        parts = TOKEN.fullmatch(text)
        if parts is None:
            return None
        token, identity = self._by_id.get(parts[1], (_NOBODY, None))
        is_right = compare_digest(hashed(parts[2]), token.sha256)
        return identity if is_right and not token.is_over(now) else None

    def stands(self, identity: Identity, now: float) -> bool:
        """Whether what was identified some time ago would be identified now."""
        token, known = self._by_id.get(identity.token, (_NOBODY, None))
        return known == identity and not token.is_over(now)

    def next_expiry(self, now: float) -> float | None:
        """When the next token expires."""
        ends = (token.expires_at for token, _ in self._by_id.values() if token.expires_at is not None)
        return min((end for end in ends if end > now), default=None)
