"""Connections to agents, kept while they are of use, and the one look-out for everything that takes too long.

No timer is set for a request: a single one looks at all connections four times a second. Limits are seconds, and a
timer each would cost as much as reading the answer.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from agentgate.adapters.http.connection import Connection, Exchange
from agentgate.adapters.http.options import HttpOptions
from agentgate.model import HttpEnd, HttpFailure
from agentgate.ports.http import Place
from agentgate.runtime.service import Service

LOOK_S: Final = 0.25
RESOLVE_S: Final = 5.0
RESOLVES_MAX: Final = 16  # names looked up at once: each holds a thread while a name server is silent


class SystemHttp(Service):
    """The machine's network (`ports.http.HttpClient`)."""

    def __init__(
        self, options: HttpOptions, body_bytes_max: int, make_context: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        super().__init__()
        self.options = options
        self.body_bytes_max = body_bytes_max
        self._make_context = make_context or ssl.create_default_context
        self._context: ssl.SSLContext | None = None
        self._resolving = 0
        self._looking: asyncio.TimerHandle | None = None
        self.connections: set[Connection] = set()

    async def resolve(self, host: str) -> Sequence[str]:
        """The addresses of a name."""
        if self._resolving >= RESOLVES_MAX:
            raise OSError(f"{self._resolving} names are being looked up already; try again in a moment")
        self._resolving += 1
        try:
            async with asyncio.timeout(RESOLVE_S):
                found = await self._loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise OSError(f"the name server did not answer within {RESOLVE_S:g} s") from None
        except UnicodeError as error:
            raise OSError(f"it cannot be looked up: {error}") from None
        finally:
            self._resolving -= 1
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    def upstream(self, place: Place, connections_max: int) -> Pool:
        """Connections to this place."""
        return Pool(self, place, connections_max)

    def context(self) -> ssl.SSLContext:
        """How a server has to prove who it is; made at the first use, for it reads the system's certificates."""
        if self._context is None:
            self._context = self._make_context()
        return self._context

    def start(self, pool: Pool, exchange: Exchange) -> None:
        """Make a connection for a request."""
        exchange.task = self._task(self._connect(pool, exchange))

    def look_out(self) -> None:
        """Look at the connections every now and then, as long as there are any."""
        if self._looking is None:
            self._looking = self._loop.call_later(LOOK_S, self._look)

    def now(self) -> float:
        """The loop's time."""
        return self._loop.time()

    def soon(self, exchange: Exchange, end: HttpEnd) -> None:
        """End a request, after whoever sends it has it in hand."""
        self._loop.call_soon(exchange.end, end)

    async def _stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        for connection in list(self.connections):
            connection.abort()
        await super()._stop()
        await asyncio.sleep(0)  # aborted transports are closed in the loop's next turn

    def _look(self) -> None:
        self._looking = None
        now = self._loop.time()
        for connection in list(self.connections):
            if (why := connection.overdue(now)) is not None:
                connection.give_up(why)
        if self.connections:
            self.look_out()

    async def _connect(self, pool: Pool, exchange: Exchange) -> None:
        place = pool.place
        limit_s = min(self.options.connect_s, max(0.0, exchange.until - self._loop.time()))
        try:
            async with asyncio.timeout(limit_s):
                await self._loop.create_connection(
                    lambda: Connection(pool, exchange),
                    place.address,
                    place.port,
                    ssl=self.context() if place.tls_name else None,
                    server_hostname=place.tls_name or None,
                )
        except TimeoutError:
            pool.not_connected(exchange, f"no connection to {pool.shown} within {limit_s:.3g} s")
        except (OSError, ssl.SSLError) as error:
            pool.not_connected(exchange, f"no connection to {pool.shown}: {_reason(error)}")
        finally:
            pool.connecting.discard(exchange)


class Pool:
    """The connections to one place (`ports.http.Upstream`): the one used last is used next, the others may end."""

    def __init__(self, client: SystemHttp, place: Place, connections_max: int) -> None:
        self._client = client
        self.place = place
        self.limits = client.options
        self.body_bytes_max = client.body_bytes_max
        self._connections_max = connections_max
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self.connecting: set[Exchange] = set()
        self._is_closed = False
        self.now = client.now

    @property
    def shown(self) -> str:
        """Where it leads, for people."""
        address = f"[{self.place.address}]" if ":" in self.place.address else self.place.address
        return f"{address}:{self.place.port}"

    def send(
        self, request: bytes, on_end: Callable[[HttpEnd], None], *, until: float, may_repeat: bool = False
    ) -> Exchange:
        """Send a whole request."""
        exchange = Exchange(request, on_end, until, may_repeat=may_repeat)
        while self._idle:
            if self._idle.pop().carry(exchange):
                return exchange
        if len(self._open) + sum(not other.is_over for other in self.connecting) >= self._connections_max:
            detail = f"all {self._connections_max} connections to {self.shown} are taken by calls that have not ended"
            self._client.soon(exchange, HttpFailure(sent=False, detail=detail))
        else:
            self.connect(exchange)
        return exchange

    def close(self) -> None:
        """Keep no connection any more."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.abort()

    # --- what the connections call

    def connect(self, exchange: Exchange) -> None:
        """A new connection for this request."""
        self.connecting.add(exchange)
        self._client.start(self, exchange)

    def not_connected(self, exchange: Exchange, why: str) -> None:
        """There is no connection for it; what a connection has begun ends there.

        It may have been sent all the same, over a kept connection that broke before its answer.
        """
        if exchange.connection is None and not exchange.is_over:
            exchange.end(HttpFailure(sent=exchange.was_sent, detail=why))

    def opened(self, connection: Connection, exchange: Exchange) -> None:
        """It is connected, for this request."""
        self.connecting.discard(exchange)
        self._open.add(connection)
        self._client.connections.add(connection)
        self._client.look_out()

    def keep(self, connection: Connection) -> None:
        """It is free for the next request."""
        if self._is_closed:
            connection.abort()
        else:
            self._idle.append(connection)

    def closed(self, connection: Connection) -> None:
        """It is gone."""
        self._open.discard(connection)
        self._client.connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)


def _reason(error: OSError) -> str:
    """In the words of the system; asyncio names the address instead of the reason."""
    if error.errno and not isinstance(error, ssl.SSLError):
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
