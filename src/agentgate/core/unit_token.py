"""Unit tokens: how a handler shows, with every call it makes, in which unit it runs.

Decides whether a token was made by this gate and what it says. The rules:

- A token is a claim and a MAC over it (keyed BLAKE2b, 128 bits). It verifies without memory and over restarts, because
  the secret lives in the store.
- Every other text is no token: wrong length, wrong alphabet, another secret, a changed bit, a second way to write the
  same bytes. `read` answers None and never raises, whatever it is given.
- MACs are compared in constant time.

How it works. Claim and MAC are written in URL-safe base64 without padding, about 150 characters for the ids the gate
makes. Reading parses the claim, makes its token anew and compares the texts, so that there is only one way to write it.

Not covered: whether the unit is still open. A token is dead when its unit is (`core.units`), not by itself.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as BadBase64
from binascii import b2a_base64
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

from msgspec import DecodeError, Struct
from msgspec.msgpack import Decoder, Encoder

MAC_BYTES: Final = 16  # guessing 128 bits over a network is hopeless, and the token stays short
TOKEN_LENGTH_MAX: Final = 2048  # ids of the gate and the longest name of a user; longer texts are not looked at
SECRET_BYTES_MIN: Final = 16
URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
PURPOSE: Final = b"agentgate-unit"  # a MAC made for anything else under the same secret is none here


class UnitClaim(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a token says: this unit runs in this chain at this depth, under this epoch of its grant, for this user."""

    unit: str
    parent: str
    root: str
    depth: int
    epoch: int
    user: str = ""


class UnitTokens:
    """Makes and reads tokens with one secret."""

    __slots__ = ("_decode", "_encode", "_keyed")

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SECRET_BYTES_MIN:
            raise ValueError(
                f"the secret of unit tokens has {len(secret)} bytes; at least {SECRET_BYTES_MIN} are needed"
            )
        key = blake2b(secret, digest_size=32).digest()
        self._keyed = blake2b(key=key, digest_size=MAC_BYTES, person=PURPOSE)
        self._encode = Encoder().encode
        self._decode = Decoder(UnitClaim).decode

    def issue(self, claim: UnitClaim) -> str:
        """The token of a unit."""
        body = self._encode(claim)
        keyed = self._keyed.copy()
        keyed.update(body)
        return b2a_base64(keyed.digest() + body, newline=False).translate(URL_SAFE, b"=").decode("ascii")

    def read(self, token: str) -> UnitClaim | None:
        """What the token says, if this gate has made it."""
        if len(token) > TOKEN_LENGTH_MAX or not token.isascii():
            return None
        try:
            claim = self._decode(urlsafe_b64decode(token + "=" * (-len(token) % 4))[MAC_BYTES:])
        except (BadBase64, DecodeError):
            return None
        return claim if compare_digest(self.issue(claim), token) else None
