"""Connections of the HTTP client: kept, replaced, bounded, proven by certificates, and gone when they should be."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from agentgate.model import HttpAnswer, HttpEnd, HttpFailure
from agentgate.ports.http import Place
from tests.integration.realtime import realtime
from tests.integration.short_client import REQUEST, ask, client, pool_of, reads_nothing, saying, silent
from tests.integration.wild_server import Visit, answering, ok, wild_server


@realtime
async def test_a_connection_is_kept_and_used_again() -> None:
    """B14: requests one after another share a connection; one that is not used is closed."""
    async with wild_server(answering(ok(b"[1]"))) as server, client() as http:
        pool = pool_of(http, server)
        for _ in range(3):
            assert await ask(pool) == HttpAnswer(status=200, body=b"[1]")
        assert (len(server.visits), len(server.requests)) == (1, 3)
        await server.all_ended()
        assert http.connections == set()
        assert await ask(pool) == HttpAnswer(status=200, body=b"[1]")
        assert len(server.visits) == 2


@pytest.mark.parametrize("surplus", [b"[2]", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1", b"\x00"])
@realtime
async def test_what_nobody_asked_for_ends_a_kept_connection(surplus: bytes) -> None:
    """I6: bytes beyond an answer are never taken for the next one, in the same moment or a later one."""

    async def behave(visit: Visit) -> None:
        await visit.request()
        await visit.say(ok(b"[1]") + (surplus if visit.number == 1 else b""))
        await asyncio.sleep(0.05)
        await visit.say(surplus)

    async with wild_server(behave) as server, client() as http:
        pool = pool_of(http, server)
        for _ in range(3):
            assert await ask(pool) == HttpAnswer(status=200, body=b"[1]")
            await asyncio.sleep(0.2)
        assert len(server.visits) == 3


async def closes_at_the_second(visit: Visit) -> None:
    await visit.request()
    await visit.say(ok(b"[1]"))
    await visit.request()
    visit.reset()


@realtime
async def test_a_read_that_meets_a_dead_connection_takes_a_new_one() -> None:
    """B5: a kept connection that ends before any byte of the answer is no answer: who may repeat does so, at once."""
    async with wild_server(closes_at_the_second) as server, client() as http:
        pool = pool_of(http, server)
        for _ in range(4):
            assert await ask(pool, may_repeat=True) == HttpAnswer(status=200, body=b"[1]")
        assert len(server.visits) == 4


@realtime
async def test_a_write_that_meets_a_dead_connection_is_lost() -> None:
    """C4: the same for a write: it may have been done, so it is not sent again."""
    async with wild_server(closes_at_the_second) as server, client() as http:
        pool = pool_of(http, server)
        await ask(pool)
        end = await ask(pool)
        assert isinstance(end, HttpFailure)
        assert (end.sent, "before the answer" in end.detail, len(server.requests)) == (True, True, 2)


@realtime
async def test_a_new_connection_that_ends_is_not_tried_again() -> None:
    """B5: retries are the gate's: the client replaces a kept connection only."""
    async with wild_server(saying()) as server, client() as http:
        end = await ask(pool_of(http, server), may_repeat=True)
        assert isinstance(end, HttpFailure)
        assert (end.sent, len(server.visits)) == (True, 1)


@realtime
async def test_nobody_there_means_not_sent() -> None:
    """B4: no connection, nothing sent: refused, or no answer to the attempt to connect."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with client() as http:
            pool = http.upstream(Place(address="127.0.0.1", port=taken.getsockname()[1]), 8)
            end = await ask(pool)
            assert isinstance(end, HttpFailure)
            assert (end.sent, "onnection refused" in end.detail) == (False, True), end.detail


@realtime
async def test_a_host_that_swallows_connections_is_given_up() -> None:
    """B14: a full backlog answers nothing; the attempt ends at its limit, and nothing was sent."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # the backlog, and what the system takes beyond it
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        async with client() as http:
            end = await ask(http.upstream(Place(address="127.0.0.1", port=full.getsockname()[1]), 8))
            assert isinstance(end, HttpFailure)
            assert (end.sent, "within 0.5 s" in end.detail) == (False, True), end.detail


@realtime
async def test_connections_are_bounded() -> None:
    """B14: at the bound a request is not sent, and is told so; an end makes room."""
    async with wild_server(silent) as server, client() as http:
        pool = pool_of(http, server, connections_max=2)
        exchanges = [pool.send(REQUEST, lambda _end: None, until=1e12) for _ in range(2)]
        end = await ask(pool)
        assert isinstance(end, HttpFailure)
        assert (end.sent, "all 2 connections" in end.detail) == (False, True)
        exchanges[0].abort()
        assert await ask(pool, within_s=0.3) == HttpFailure(
            sent=True, detail="no answer came in the time that was left"
        )


@realtime
async def test_an_abort_closes_the_connection_and_says_nothing() -> None:
    """B14: whoever gives a request up hears no more of it, and the server sees the connection end."""
    ends: list[HttpEnd] = []
    async with wild_server(silent) as server, client() as http:
        pool = pool_of(http, server)
        early = pool.send(REQUEST, ends.append, until=1e12)
        assert early.abort() is False  # no connection has come about: nothing was sent
        late = pool.send(REQUEST, ends.append, until=1e12)
        await server.asked.wait()
        assert late.abort() is True
        assert late.abort() is True
        await server.all_ended()
        assert (ends, http.connections) == ([], set())


@realtime
async def test_leaving_the_client_ends_everything_without_a_word() -> None:
    """B14: requests on their way, kept connections and attempts to connect are gone when the client is left."""
    ends: list[HttpEnd] = []
    async with wild_server(silent) as server:
        async with client() as http:
            pool = pool_of(http, server)
            pool.send(REQUEST, ends.append, until=1e12)
            await server.asked.wait()
            pool.send(REQUEST, ends.append, until=1e12)
        await server.all_ended()
    assert ends == []


@realtime
async def test_a_callback_that_fails_hurts_nobody_else() -> None:
    """A defect behind one request is logged, and the connection serves the next."""

    def fail(_end: HttpEnd) -> None:
        raise RuntimeError("a defect of this test")

    async with wild_server(answering(ok(b"[1]"))) as server, client() as http:
        pool = pool_of(http, server)
        pool.send(REQUEST, fail, until=1e12)
        assert await ask(pool) == HttpAnswer(status=200, body=b"[1]")


# --- names and certificates


@realtime
async def test_names_are_looked_up_by_the_system() -> None:
    """A1: a name has the system's addresses, and one without any is an error."""
    async with client() as http:
        assert "127.0.0.1" in await http.resolve("localhost")
        for name in ("nowhere.invalid", "a" * 64 + ".invalid"):
            with pytest.raises(OSError, match=r".+"):
                await http.resolve(name)


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """How a server of this name proves itself, and who believes it."""
    command = shutil.which("openssl")
    if command is None:
        pytest.skip("openssl is not there to make a certificate")
    key, cert = folder / "key.pem", folder / "cert.pem"
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    files = ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([command, *made, *files], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))


@realtime
async def test_with_tls_the_name_is_proven_at_the_pinned_address(tmp_path: Path) -> None:
    """I6: https connects to the pinned address and wants the endpoint's name proven; otherwise nothing is sent."""
    server_side, client_side = certificate(tmp_path, "agents.internal")
    async with wild_server(answering(ok(b"[1]")), server_side) as server:
        async with client(client_side) as http:
            assert await ask(pool_of(http, server, tls_name="agents.internal")) == HttpAnswer(status=200, body=b"[1]")
            wrong = await ask(pool_of(http, server, tls_name="other.internal"))
        async with client() as http:
            unknown = await ask(pool_of(http, server, tls_name="agents.internal"))
        for end in (wrong, unknown):
            assert isinstance(end, HttpFailure)
            assert (end.sent, "certificate" in end.detail.lower()) == (False, True), end.detail
        assert len(server.requests) == 1


@realtime
async def test_tls_towards_a_plain_server_sends_nothing() -> None:
    """B14: a server that speaks no TLS, and one that says nothing, are not sent anything."""
    for behaviour in (saying(b"HTTP/1.1 400 Bad\r\n\r\n"), reads_nothing):
        async with wild_server(behaviour) as server, client() as http:
            end = await ask(pool_of(http, server, tls_name="agents.internal"))
            assert isinstance(end, HttpFailure)
            assert end.sent is False
