"""Reads calls and answers as they came, over the link or HTTP, and says what is wrong with what cannot be taken."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from agentgate.core import payload
from agentgate.core.payload import PayloadOptions
from agentgate.errors import WireError
from agentgate.model import problem
from agentgate.model.link import Answer, CallParams, SignalParams

T = TypeVar("T")
Params = TypeVar("Params", bound=CallParams)

BEYOND: Final = "Number out of range"

CALL: Final = msgspec.json.Decoder(CallParams)
_answer: Final = msgspec.json.Decoder(Answer)
_signal: Final = msgspec.json.Decoder(SignalParams)
_encode: Final = msgspec.json.Encoder().encode


def message(raw: bytes, decoder: msgspec.json.Decoder[T], name: str) -> T:
    """The parameters of a message; raises `WireError`."""
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        text = f"`{name}`: {error}"
        raise WireError(text) from error


def call(raw: bytes, options: PayloadOptions, decoder: msgspec.json.Decoder[Params]) -> Params:
    """The parameters of a call; raises `WireError` for what no call may carry."""
    try:
        params = decoder.decode(raw)
    except msgspec.ValidationError as error:
        if BEYOND in str(error):  # a number of the payload, which the strict decoder refuses in another way
            raise WireError(payload.reason(raw, error, options)) from error
        text = f"the call is not of the right form: {error}"
        raise WireError(text) from error
    except (msgspec.MsgspecError, RecursionError):
        payload.decode(raw, options)  # raises, and names what is wrong
        raise
    _check(raw, params.payload, options)
    return params


def signal(raw: bytes, options: PayloadOptions) -> SignalParams:
    """The parameters of a signal; raises `WireError` for what none may carry."""
    params = message(raw, _signal, "signal")
    _check(raw, params.value, options, what="value of the signal", setting=" (`signals.value_bytes_max`)")
    return params


def answer(raw: bytes, options: PayloadOptions) -> Answer:
    """An agent's answer; one that cannot be taken becomes the error that says so, under the same number."""
    try:
        said = _answer.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        return refused(f"the answer is not of the right form: {error}")
    try:
        _check(raw, said.value, options)
    except WireError as error:
        return msgspec.structs.replace(refused(error.detail), seq=said.seq, handler_ms=said.handler_ms)
    return said


def refused(why: str) -> Answer:
    """What counts instead of an answer that cannot be taken."""
    return Answer(error=problem("malformed_output", sent=True, detail=why))


def _check(raw: bytes, value: Any, options: PayloadOptions, *, what: str = "payload", setting: str = "") -> None:
    """Size, depth and NUL of a value inside its message; the message is the upper bound of its size."""
    if len(raw) > options.bytes_max and len(_encode(value)) > options.bytes_max:
        text = f"the {what} has {len(_encode(value))} bytes; at most {options.bytes_max} are allowed{setting}"
        raise WireError(text, code="too_large")
    found = payload.flaw(raw, value, options)
    if found is not None:
        raise WireError(found)
