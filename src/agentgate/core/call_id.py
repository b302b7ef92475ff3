"""The id of a keyed call over HTTP: its key in one word that fits into a URL.

Decides what a caller is given to ask for its call later, and which call an id names. The rules:

- The id is the key itself, written down: target, caller, task type, business key and action. So every gateway can read
  it, also after a restart, and nothing has to be remembered for it.
- The tenant is never in it. It comes from whoever asks, so that an id leads nobody into another tenant.
- There is one way to write an id. Any other text is none: `read` answers None and never raises, whatever it is given.

How it works: `k`, then the parts in MessagePack and URL-safe base64 without padding. Reading writes the parts anew and
compares the texts.

Not covered: whether there is such a call, and who may ask for it (`gateway.front`, `server`).
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from binascii import Error as BadBase64
from binascii import b2a_base64
from typing import Final

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from agentgate.core.keys import PART_LENGTH_MAX
from agentgate.model import KeyId

PREFIX: Final = "k"
PARTS: Final = 5
# Five parts of four bytes a character, a header for each and for all, a third more in base64.
ID_LENGTH_MAX: Final = len(PREFIX) + (PARTS * (4 * PART_LENGTH_MAX + 5) + 1) * 4 // 3 + 4

_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")
_encode: Final = Encoder().encode
_decode: Final = Decoder(tuple[str, str, str, str, str]).decode


def call_id(key: KeyId) -> str:
    """The id of the call with this key."""
    return PREFIX + b2a_base64(_encode(key[1:]), newline=False).translate(_URL_SAFE, b"=").decode("ascii")


def key_of(text: str, tenant: str) -> KeyId | None:
    """The key that an id names for somebody of this tenant; None if it is no id."""
    if len(text) > ID_LENGTH_MAX or not text.startswith(PREFIX) or not text.isascii():
        return None
    body = text.removeprefix(PREFIX)
    try:
        parts = _decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (BadBase64, MsgspecError):
        return None
    key = KeyId(tenant, *parts)
    return key if call_id(key) == text else None
