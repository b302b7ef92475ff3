"""A method's annotations as its wire format: what a process boundary needs to know about a call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, get_type_hints

import msgspec

ENCODER: Final = msgspec.json.Encoder()


@functools.lru_cache(maxsize=256)
def arguments_decoder(function: Callable[..., Any]) -> msgspec.json.Decoder[tuple[Any, ...]]:
    """Decodes the arguments of a method (without the object) or of a class that is to be built."""
    target = function.__init__ if inspect.isclass(function) else function
    names = list(inspect.signature(target).parameters)[1:]
    hints = get_type_hints(target)
    return msgspec.json.Decoder(tuple[tuple(hints[name] for name in names)])  # type: ignore[misc] # built at run time


@functools.lru_cache(maxsize=256)
def answer_decoder(function: Callable[..., Any]) -> msgspec.json.Decoder[Any]:
    """Decodes what a method returns."""
    return msgspec.json.Decoder(get_type_hints(function)["return"])
