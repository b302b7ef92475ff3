"""Where the gate listens, and what a connection may cost it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentgate.core.ranges import all_of, require

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "::1", "localhost"})
HOST_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,252})", re.IGNORECASE | re.ASCII)
PORT_MAX: Final = 65_535
FRAME_BYTES_MIN: Final = 65_536  # the SDK's batches and reports must fit


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """Address and bounds of the server.

    - `host`, 127.0.0.1: without tokens nobody outside this machine may reach a gate.
    - `hosts`, none: further names of the gate, which `Host` may hold (`server.access`).
    - `tokens`, off: on one's own machine everybody is a neighbour. The file is made by `agentgate token`.
    - `port`, 7070; 0 takes any free one, and the gate says which.
    - `name`, "gate": what spans and agents call this gateway.
    - `frame_bytes_max`, 2 MiB: the largest payload (1 MiB) with its envelope, or a hello with kept answers.
    - `queue_bytes_max`, 8 MiB: what waits for one peer to read it; a peer that is further behind is cut.
    - `connections_max`, 10 000: links and requests together; idle links cost some KiB each.
    - `idle_s`, 30: a link beats every two seconds; one without any frame for that long has no process behind it.
    - `drain_s`, 5: how long a stopping gate lets running calls end; what is keyed goes on after the restart.
    """

    host: str = "127.0.0.1"
    hosts: str | None = None
    tokens: str | None = None
    port: int = 7070
    name: str = "gate"
    frame_bytes_max: int = 2_097_152
    queue_bytes_max: int = 8_388_608
    connections_max: int = 10_000
    idle_s: float = 30.0
    drain_s: float = 5.0

    def __post_init__(self) -> None:
        require(self, "port", high=PORT_MAX)
        require(self, "frame_bytes_max", "queue_bytes_max", low=FRAME_BYTES_MIN)
        require(self, "connections_max", low=1)
        require(self, "idle_s", low=1.0)
        require(self, "drain_s", high=600.0)
        if not (self.name and self.name.isprintable()):
            raise ValueError(f"name must be printable and not empty, not {self.name!r}")
        if self.tokens is not None and not self.tokens.strip():
            raise ValueError("tokens must name a file, or be off")
        if wrong := [repr(name) for name in self.host_names if not HOST_NAME.fullmatch(name)]:
            raise ValueError(f"hosts are names such as gate.example.com, without a port, not {all_of(wrong)}")
        if self.host not in LOOPBACK_HOSTS and self.tokens is None:
            raise ValueError(
                f"host {self.host!r} is not 127.0.0.1, ::1 or localhost, which needs tokens. Type: "
                "agentgate token create NAME --scope submit --file tokens.json, and name the file with --tokens or "
                "server.tokens"
            )

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names in `hosts`."""
        return tuple((self.hosts or "").replace(",", " ").split())
