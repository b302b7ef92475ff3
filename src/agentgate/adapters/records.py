"""Records as bytes.

Every store keeps them in this form, also the one in memory: what cannot be written is refused there too, and nobody
shares a mutable payload with what is stored.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

from agentgate.errors import StoreBadInput
from agentgate.model import Record

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[Record])


def encode(record: Record) -> str:
    """A record as JSON; raises `StoreBadInput` for what JSON cannot carry."""
    try:
        return _ENCODER.encode(record).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise StoreBadInput(f"the request cannot be stored: {error}") from error


def light(record: Record) -> Record:
    """A record as it is listed: without what a caller has sent and was given."""
    outcome = None if record.outcome is None else replace(record.outcome, value=None)
    return replace(record, payload=None, outcome=outcome)


def decode(stored: bytes | str) -> list[Record]:
    """The records of a JSON array."""
    return _DECODER.decode(stored)
