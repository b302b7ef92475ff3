"""A client with short limits, and one question to a server; no connection is left at the end."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

from agentgate.adapters.http import HttpOptions, SystemHttp
from agentgate.adapters.http.client import Pool
from agentgate.model import HttpEnd
from agentgate.ports.http import Place
from tests.integration.wild_server import Behaviour, Visit, WildServer

LIMITS = HttpOptions(connect_s=0.5, idle_s=0.5, answer_s=1.2, keep_s=0.5, head_bytes_max=2048)
BODY_MAX = 1000
ENOUGH_S = 5.0  # beyond every limit above, on a machine that is busy
REQUEST = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}"
HEAD = b"HTTP/1.1 200 OK\r\n"


@contextlib.asynccontextmanager
async def client(context: ssl.SSLContext | None = None) -> AsyncIterator[SystemHttp]:
    """A client that has no connection left at the end, whatever was done with it."""
    async with SystemHttp(LIMITS, BODY_MAX, (lambda: context) if context is not None else None) as http:
        yield http
    assert http.connections == set()


def pool_of(http: SystemHttp, server: WildServer, connections_max: int = 8, tls_name: str = "") -> Pool:
    return http.upstream(Place(address="127.0.0.1", port=server.port, tls_name=tls_name), connections_max)


async def ask(pool: Pool, *, within_s: float = ENOUGH_S, may_repeat: bool = False) -> HttpEnd:
    """What a request comes to; it may not take longer than all limits together."""
    loop = asyncio.get_running_loop()
    ends: list[HttpEnd] = []
    came = asyncio.Event()

    def ended(end: HttpEnd) -> None:
        ends.append(end)
        came.set()

    pool.send(REQUEST, ended, until=loop.time() + within_s, may_repeat=may_repeat)
    async with asyncio.timeout(2 * ENOUGH_S):
        await came.wait()
    await asyncio.sleep(0)
    assert len(ends) == 1
    return ends[0]


def saying(*parts: bytes) -> Behaviour:
    """Say this after the request, and close."""

    async def behave(visit: Visit) -> None:
        await visit.request()
        for part in parts:
            await visit.say(part)
            await asyncio.sleep(0.01)
        visit.close()

    return behave


async def silent(visit: Visit) -> None:
    """Take the request and say nothing."""
    await visit.request()
    await visit.hang()


async def reads_nothing(visit: Visit) -> None:
    """Do not even take the request."""
    await asyncio.sleep(2 * ENOUGH_S)
