"""What the OpenAPI document says of a handler beyond what its code shows; stands beside the handler, in its `opt`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

DOC_OPTION: Final = "doc"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A body: its type, an example, and in which format; `type` None is text."""

    type: Any
    example: Any
    media_type: str = "application/json"
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A part of the query, or a header, that may be given."""

    name: str
    type: Any
    meaning: str
    place: str = "query"
    example: Any = None


@dataclass(frozen=True, kw_only=True)
class Doc:
    """An operation: its answers by status, its errors by code, what it may be given, and an example of each."""

    answers: dict[int, Shown]
    errors: tuple[str, ...] = ()
    body: Shown | None = None
    parameters: tuple[Parameter, ...] = ()
    path_examples: dict[str, str] = field(default_factory=dict)


def documented(doc: Doc) -> dict[str, Any]:
    """The part of a handler's `opt`."""
    return {DOC_OPTION: doc}
