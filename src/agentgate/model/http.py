"""Agents that are reached by plain HTTP: where one is, and what came back from it."""

from __future__ import annotations

from msgspec import Struct


class Endpoint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an instance takes calls.

    `address` is what the host's name meant when it was looked up; nothing else is ever connected to. `probe` is a path
    that answers while the instance is alive, or empty.
    """

    url: str
    address: str
    probe: str = ""


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """An answer as it was read from the wire; a field that was not there is None.

    `too_large` says that the body was given up at the bound, and is empty here.
    """

    status: int
    body: bytes = b""
    content_encoding: str | None = None
    retry_after: str | None = None
    date: str | None = None
    location: str | None = None
    too_large: bool = False


class HttpFailure(Struct, frozen=True, kw_only=True):
    """No answer came. `sent` says whether the agent may have seen the request and acted on it."""

    sent: bool
    detail: str


HttpEnd = HttpAnswer | HttpFailure
