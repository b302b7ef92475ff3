"""Messages of the link as bytes, both ways; nothing here knows a session."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from agentgate.core import payload
from agentgate.core.payload import DEPTH_CEILING, PayloadOptions
from agentgate.errors import WireError
from agentgate.model.link import Frame, ProtocolProblem

# One WebSocket message carries at most this much of a batch; a single larger message travels alone.
BATCH_BYTES_MAX: Final = 256 * 1024
# Messages in one batch that arrives; more is no honest peer.
BATCH_COUNT_MAX: Final = 1024

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602

_ANY_DEPTH: Final = PayloadOptions(depth_max=DEPTH_CEILING)  # what is deeper ends the decoder itself

_encoder = msgspec.json.Encoder()
_frame_decoder = msgspec.json.Decoder(Frame)
_batch_decoder = msgspec.json.Decoder(list[Frame])


class Message(Struct, omit_defaults=True):
    """A request or notification that leaves."""

    method: str
    params: Any
    id: str | None = None
    jsonrpc: str = msgspec.field(default_factory=lambda: "2.0")  # a factory, because a default would be omitted


class Response(Struct):
    """The answer to a request that came."""

    id: str | int | None
    result: Any
    jsonrpc: str = "2.0"


class ErrorResponse(Struct):
    """The answer to a frame that breaks the protocol."""

    id: str | int | None
    error: ProtocolProblem
    jsonrpc: str = "2.0"


def encode(message: Struct) -> bytes:
    """One message as bytes."""
    return _encoder.encode(message)


def join(messages: list[bytes]) -> list[bytes]:
    """Messages, in order, as as few WebSocket messages as the batch bound allows."""
    joined: list[bytes] = []
    batch: list[bytes] = []
    size = 0
    for message in messages:
        if batch and size + len(message) > BATCH_BYTES_MAX:
            joined.append(_batched(batch))
            batch, size = [], 0
        batch.append(message)
        size += len(message)
    if batch:
        joined.append(_batched(batch))
    return joined


def _batched(batch: list[bytes]) -> bytes:
    return batch[0] if len(batch) == 1 else b"[" + b",".join(batch) + b"]"


def decode(data: bytes | str) -> list[Frame]:
    """The messages of one WebSocket message; raises `WireError` when it is not JSON-RPC."""
    try:
        text = data.lstrip()
        if text[:1] in (b"[", "["):
            frames = _batch_decoder.decode(text)
            if len(frames) > BATCH_COUNT_MAX:
                msg = f"a batch of {len(frames)} messages; {BATCH_COUNT_MAX} is the bound"
                raise WireError(msg, code="too_large")
            return frames
        return [_frame_decoder.decode(text)]
    except msgspec.ValidationError as error:
        msg = f"not a JSON-RPC message: {error}"
        raise WireError(msg) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
        msg = f"not a JSON-RPC message: {payload.reason(raw, error, _ANY_DEPTH)}"
        raise WireError(msg) from error


def raw(value: Raw | object) -> bytes:
    """The bytes of a raw part; absent parts count as an empty object."""
    return bytes(value) if isinstance(value, Raw) else b"{}"
