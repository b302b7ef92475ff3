"""What stands between a client and the upstream in `bench.http`: one target a file, all of one shape."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

LOOPBACK: Final = "127.0.0.1"
ECHO: Final = "/look_up"
CHAT: Final = "/v1/chat/completions"


class Upstream(Struct, frozen=True, kw_only=True):
    """The answers of the upstream, whole, by the path that is asked for."""

    answers: dict[bytes, bytes]
    otherwise: bytes


class Place(Struct, frozen=True, kw_only=True):
    """Where a target is started, and what it is in front of."""

    folder: Path
    """Its own, empty, gone afterwards."""
    upstream_port: int
    payload: bytes
    """The JSON that is to reach the upstream."""


class Target(Struct, frozen=True, kw_only=True):
    """Something that is up: where it is, and what to send it."""

    port: int
    request: bytes
    pid: int | None = None
    """Its process, whose children count as well; None when nothing is in between."""
    is_steady: bool = True
    """Whether it is measured at a steady rate, too."""


class Peer(Protocol):
    """One way from a client to the upstream."""

    @property
    def name(self) -> str:
        """What it is asked for by."""

    @property
    def note(self) -> str:
        """How it was set up, and what is not the same as for the others."""

    def missing(self) -> str:
        """What to install before it can be measured; empty when it is there."""

    def running(self, place: Place) -> contextlib.AbstractContextManager[dict[str, Target]]:
        """Start it, and end it on leaving. Gives what is measured of it, by name."""
