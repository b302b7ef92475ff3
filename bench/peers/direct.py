"""Nothing in between: what the load and the upstream can do by themselves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from bench import http_wire
from bench.peers import ECHO, Place, Target


class Direct:
    """The upstream itself."""

    name = "direct"
    note = "direct: load and upstream share their core, as they always do; it is as much as the load can send"

    def missing(self) -> str:
        """Nothing."""
        return ""

    @contextlib.contextmanager
    def running(self, place: Place) -> Iterator[dict[str, Target]]:
        """It is up already."""
        yield {self.name: Target(port=place.upstream_port, request=http_wire.request("POST", ECHO, place.payload))}
