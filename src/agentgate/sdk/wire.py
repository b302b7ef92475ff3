"""JSON-RPC messages as bytes: how the link writes and reads them (docs/reference/link.md)."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from agentgate.errors import WireError
from agentgate.model.link import Frame, ProtocolProblem
from agentgate.model.outcome import Outcome, failure

INVALID_PARAMS = -32602
NO_SUCH_METHOD = -32601

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_frames = msgspec.json.Decoder(Frame | list[Frame])
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def request(request_id: str, method: str, params: msgspec.Struct) -> bytes:
    """A message that wants a response."""
    return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (
        _encode(request_id),
        method.encode(),
        _encode(params),
    )


def notification(method: str, params: msgspec.Struct) -> bytes:
    """A message without a response."""
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (method.encode(), _encode(params))


def response(request_id: str, result: msgspec.Struct) -> bytes:
    """The response to a request: an outcome, also when it is a failure."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_encode(request_id), _encode(result))


def breach(request_id: str | int | None, code: int, message: str) -> bytes:
    """The response to a request that breaks the protocol."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (
        _encode(request_id),
        _encode(ProtocolProblem(code=code, message=message)),
    )


def batch(messages: list[bytes]) -> bytes:
    """Several messages as one."""
    return messages[0] if len(messages) == 1 else b"[" + b",".join(messages) + b"]"


def read(data: bytes | str) -> list[Frame]:
    """The messages of one WebSocket message; raises `WireError` when it is none."""
    try:
        frames = _frames.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"not a JSON-RPC message: {error}") from error
    return frames if isinstance(frames, list) else [frames]


def body(raw: msgspec.Raw | msgspec.UnsetType, as_type: type[T]) -> T:
    """The params or result of a frame; raises `WireError` when it does not fit."""
    decoder = _decoders.get(as_type)
    if decoder is None:
        decoder = _decoders[as_type] = msgspec.json.Decoder(as_type)
    try:
        decoded: T = decoder.decode(b"{}" if raw is msgspec.UNSET else raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"not a valid {as_type.__name__}: {error}") from error
    return decoded


def outcome(frame: Frame) -> Outcome:
    """What a response says that a request came to."""
    if frame.error is not None:
        return failure("internal", sent=True, detail=f"the gate refused the message: {frame.error.message}")
    return body(frame.result, Outcome)
