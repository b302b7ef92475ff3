"""How the gate calls agents by HTTP: connections to one address, and a request over one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from msgspec import Struct

from agentgate.model import HttpEnd


class Place(Struct, frozen=True, kw_only=True):
    """Where connections lead: an address that was looked up and allowed; `tls_name` is whom it has to prove to be."""

    address: str
    port: int
    tls_name: str = ""  # empty: no TLS


class Exchange(Protocol):
    """One request on its way."""

    def abort(self) -> bool:
        """Give it up, its connection included; nobody is told of an end any more. Whether it may have been sent."""
        ...


class Upstream(Protocol):
    """The connections to one place; each carries one request at a time."""

    def send(
        self, request: bytes, on_end: Callable[[HttpEnd], None], *, until: float, may_repeat: bool = False
    ) -> Exchange:
        """Send a whole request. `on_end` is called exactly once, at loop time `until` at the latest (give or take).

        `may_repeat` says that a second request does no harm: then a kept connection that turns out to be dead before
        any byte of the answer is replaced at once.
        """
        ...

    def close(self) -> None:
        """Keep no connection any more; requests on their way come to their end."""
        ...


class HttpClient(Protocol):
    """Makes connections. Entered before its first use; leaving it ends everything without a word."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of a name, in the system's order; raises `OSError` when there are none, or not in time."""
        ...

    def upstream(self, place: Place, connections_max: int) -> Upstream:
        """Connections to this place, at most so many."""
        ...
