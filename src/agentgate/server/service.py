"""The server as a service: entering means listening, leaving means drained and closed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from typing import Final

import structlog
import uvicorn

from agentgate.directory import Directory
from agentgate.errors import ConfigError
from agentgate.gateway.gateway import Gateway
from agentgate.ports.clock import Clock
from agentgate.runtime.service import Service
from agentgate.runtime.span_buffer import SpanBuffer
from agentgate.server.calls import HttpCalls
from agentgate.server.direct_calls import DirectCalls
from agentgate.server.doorkeeper import Doorkeeper
from agentgate.server.http import build_http
from agentgate.server.link import Links
from agentgate.server.metrics import Metrics
from agentgate.server.options import ServerOptions
from agentgate.server.view import GateView
from agentgate.server.wait_feed import WaitFeed

BACKLOG: Final = 2048  # connections that the system holds while the loop is busy: a wave of agents starting at once
KEEP_ALIVE_S: Final = 5
REQUESTS_BESIDE: Final = 256  # health and metrics must be answered when every link is taken
CLOSE_S: Final = 3  # for requests and links to end once they were told to
DRAIN_STEP_S: Final = 0.02

log = structlog.get_logger("agentgate.server")


class ServerService(Service):
    """One listening socket with the link and the HTTP API behind it."""

    def __init__(
        self, options: ServerOptions, *, gateway: Gateway, directory: Directory, spans: SpanBuffer, clock: Clock
    ) -> None:
        super().__init__()
        self._options = options
        self._gateway = gateway
        self._view = GateView(gateway=gateway, directory=directory, spans=spans, clock=clock)
        self._doorkeeper = Doorkeeper(options, clock.wall)
        self.links = Links(gateway.connect, options, self._doorkeeper)
        self.wait_feed = WaitFeed(self._view.waits, self._task, options.queue_bytes_max)
        self._doorkeeper.on_change = self._end_fallen
        self.port = 0  # the real one, once it listens
        self.calls = HttpCalls(gateway, clock)
        app = build_http(
            self._view,
            self.calls,
            self.wait_feed,
            Metrics(self._view, self.links),
            self._doorkeeper,
            lambda: self.links.is_stopping,
        )
        direct = DirectCalls.bound(
            self.calls,
            self._doorkeeper.admit_request,
            bytes_max=options.frame_bytes_max,
            unread_max=options.queue_bytes_max,
        )
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                ws=self.links.protocol(),
                http=direct,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                limit_concurrency=options.connections_max + REQUESTS_BESIDE,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=CLOSE_S,
            )
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return f"http://{host}:{self.port}"

    async def _start(self) -> None:
        self._doorkeeper.open()
        listener = _listen(self._options)
        self.port = listener.getsockname()[1]
        self._spawn(self._server.serve(sockets=[listener]))
        await self._server.listening.wait()
        log.info("listening", url=self.url)

    async def _stop(self) -> None:
        """Take nothing new, let running calls end, then close every connection."""
        self._doorkeeper.close()
        self.links.is_stopping = True
        self.wait_feed.close()
        self._gateway.stop_taking()
        self.calls.stop_waiting()
        for server in self._server.servers:
            server.close()
        for _ in range(int(self._options.drain_s / DRAIN_STEP_S)):
            if not self._view.running():
                break
            await asyncio.sleep(DRAIN_STEP_S)
        self.calls.give_up()
        log.info("stopping", running_calls=self._view.running(), links=len(self.links.open))
        self._server.should_exit = True

    def _end_fallen(self) -> None:
        """End what those have open who would not be let in any more."""
        self.links.end_fallen()
        self.wait_feed.end_fallen(self._doorkeeper.stands)


class _Uvicorn(uvicorn.Server):
    """uvicorn inside our own loop: signals are the command's business, and being ready can be waited for."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.servers: list[asyncio.Server] = []
        self.listening = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn, then say so."""
        await super().startup(sockets)
        self.listening.set()


def _listen(options: ServerOptions) -> socket.socket:
    """The listening socket; raises `ConfigError` when the address cannot be had."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    address = "127.0.0.1" if options.host == "localhost" else options.host
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, options.port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"server.port: {options.port} is taken on {options.host}: another gate may be running there; "
                "stop it, or choose another port (0 takes a free one)"
            ) from None
        raise ConfigError(f"server.host: cannot listen on {options.host}: {os.strerror(error.errno or 0)}") from None
    listener.setblocking(False)  # noqa: FBT003 - the socket module's signature
    return listener
