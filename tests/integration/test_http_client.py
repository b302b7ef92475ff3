"""The HTTP client against servers that do everything wrong: each request ends in time, and no socket is left."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentgate.adapters.http import HttpOptions, SystemHttp
from agentgate.adapters.http.client import Pool
from agentgate.model import HttpAnswer, HttpEnd, HttpFailure
from agentgate.ports.http import Place
from tests.integration.realtime import realtime
from tests.integration.wild_server import Behaviour, Visit, WildServer, answering, ok, wild_server

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


async def one_answer(behaviour: Behaviour, *, within_s: float = ENOUGH_S) -> tuple[HttpEnd, WildServer]:
    """One request to a server; afterwards every connection has been closed from this side or from that."""
    async with wild_server(behaviour) as server, client() as http:
        pool = pool_of(http, server)
        end = await ask(pool, within_s=within_s)
        pool.close()
        await server.all_ended()
    return end, server


def saying(*parts: bytes) -> Behaviour:
    """Say this after the request, and close."""

    async def behave(visit: Visit) -> None:
        await visit.request()
        for part in parts:
            await visit.say(part)
            await asyncio.sleep(0.01)
        visit.close()

    return behave


def flooding(start: bytes, piece: bytes) -> Behaviour:
    """Never stop talking."""

    async def behave(visit: Visit) -> None:
        await visit.request()
        await visit.say(start)
        await visit.flood(piece)

    return behave


# --- what is right, however unusual

GOOD: dict[str, tuple[tuple[bytes, ...], HttpAnswer]] = {
    "a length": ((ok(b"[1]"),), HttpAnswer(status=200, body=b"[1]")),
    "byte by byte": (tuple(bytes([letter]) for letter in ok(b"[1]")), HttpAnswer(status=200, body=b"[1]")),
    "chunks": (
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n[\r\n", b"2;x=y\r\n1]\r\n0\r\nretry-after: 9\r\n\r\n"),
        HttpAnswer(status=200, body=b"[1]"),
    ),
    "the end of the connection": ((b"HTTP/1.0 200 OK\r\n\r\n[1", b"]"), HttpAnswer(status=200, body=b"[1]")),
    "the end of the connection, at once": ((b"HTTP/1.0 500 No\r\n\r\n",), HttpAnswer(status=500)),
    "no content": ((b"HTTP/1.1 204 No Content\r\n\r\n",), HttpAnswer(status=204)),
    "interim answers": (
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlocation: /x\r\n\r\n", ok(b"[1]")),
        HttpAnswer(status=200, body=b"[1]"),
    ),
    "headers that count": (
        (ok(b"", "Retry-After: 7", "DATE: x", "Location: /y", "content-encoding: br", status="503 No"),),
        HttpAnswer(status=503, retry_after="7", date="x", location="/y", content_encoding="br"),
    ),
    "more than was announced": ((ok(b"[1]") + b"[2]",), HttpAnswer(status=200, body=b"[1]")),
    "two answers for one request": ((ok(b"[1]") + ok(b"[2]"),), HttpAnswer(status=200, body=b"[1]")),
    "a body that is too large": ((ok(b"x" * 1001),), HttpAnswer(status=200, too_large=True)),
    "an error page that is too large": (
        (ok(b"x" * 1001, status="502 Bad"),),
        HttpAnswer(status=502, too_large=True),
    ),
}


@pytest.mark.parametrize("name", GOOD)
@realtime
async def test_an_answer_is_read_in_every_form(name: str) -> None:
    """B14: length, chunks or end of connection, interim answers, surplus, too large: what was said is what is read."""
    parts, answer = GOOD[name]
    end, _ = await one_answer(saying(*parts))
    assert end == answer


# --- what is wrong

WRONG: dict[str, tuple[Behaviour, str]] = {
    "no word": (saying(), "was closed before the answer"),
    "half a head": (saying(HEAD + b"content-le"), "was closed in the middle of the answer"),
    "half a body": (saying(HEAD + b"content-length: 10\r\n\r\n[1"), "was closed in the middle of the answer"),
    "half the chunks": (saying(HEAD + b"transfer-encoding: chunked\r\n\r\n9\r\n[1"), "closed in the middle"),
    "another protocol": (saying(b"SSH-2.0-OpenSSH_9.6\r\n"), "is not HTTP"),
    "garbage": (saying(bytes(range(256))), "is not HTTP"),
    "a status that is none": (saying(b"HTTP/1.1 abc OK\r\n\r\n"), "is not HTTP"),
    "HTTP/2": (saying(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00"), "is not HTTP"),
    "a length that is none": (saying(HEAD + b"content-length: -1\r\n\r\n"), "is not HTTP"),
    "two lengths": (saying(HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n[1]"), "is not HTTP"),
    "length and chunks": (
        saying(HEAD + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n"),
        "is not HTTP",
    ),
    "a chunk that is none": (saying(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n"), "is not HTTP"),
    "a NUL in the head": (saying(HEAD + b"x: a\x00b\r\n\r\n"), "is not HTTP"),
    "an upgrade": (saying(b"HTTP/1.1 101 Go\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"), "HTTP"),
    "interim answers without end": (flooding(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "interim answers without end"),
    "a head line without end": (flooding(HEAD + b"x: ", b"a" * 100), "too large"),
    "head lines without end": (flooding(HEAD, b"x: y\r\n"), "head is larger than 2048 bytes"),
    "trailers without end": (
        flooding(HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n", b"x: y\r\n"),
        "head is larger than 2048 bytes",
    ),
    "chunks of nothing but extensions": (
        flooding(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1;" + b"x" * 1000 + b"\r\n1\r\n"),
        "too large",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@realtime
async def test_a_wrong_answer_is_a_lost_one(name: str) -> None:
    """B14: whatever is no answer ends with a reason; nobody can tell what was done, so it counts as sent."""
    behaviour, why = WRONG[name]
    end, _ = await one_answer(behaviour)
    assert isinstance(end, HttpFailure)
    assert (end.sent, why in end.detail) == (True, True), end.detail


@pytest.mark.parametrize("piece", [b"5\r\n11111\r\n", b"400\r\n" + b"1" * 1024 + b"\r\n"])
@realtime
async def test_a_body_without_end_is_given_up_at_the_bound(piece: bytes) -> None:
    """B14: an endless body is not collected: it is too large as soon as it passes the bound."""
    end, _ = await one_answer(flooding(HEAD + b"transfer-encoding: chunked\r\n\r\n", piece))
    assert end == HttpAnswer(status=200, too_large=True)


@realtime
async def test_a_body_without_end_and_frame_is_given_up_at_the_bound() -> None:
    """B14: the same when only the end of the connection would end it."""
    end, _ = await one_answer(flooding(HEAD + b"\r\n", b"1" * 100))
    assert end == HttpAnswer(status=200, too_large=True)


# --- what takes too long


async def silent(visit: Visit) -> None:
    await visit.request()
    await visit.hang()


async def stops(visit: Visit) -> None:
    await visit.request()
    await visit.say(HEAD + b"content-length: 100\r\n\r\n[1")
    await visit.hang()


async def drips(visit: Visit) -> None:
    await visit.request()
    await visit.drip(HEAD + b"content-length: 500\r\n\r\n" + b"1" * 500, 0.1)


async def continues(visit: Visit) -> None:
    await visit.request()
    for _ in range(3):
        await visit.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.2)
    await visit.hang()


async def reads_nothing(visit: Visit) -> None:
    await asyncio.sleep(2 * ENOUGH_S)


@pytest.mark.parametrize(
    ("behaviour", "within_s", "why"),
    [
        (silent, 0.6, "no answer came in the time that was left"),
        (reads_nothing, 0.6, "no answer came in the time that was left"),
        (stops, ENOUGH_S, "the answer stopped for 0.5 s"),
        (continues, ENOUGH_S, "the answer stopped for 0.5 s"),
        (drips, ENOUGH_S, "the answer took longer than 1.2 s"),
    ],
)
@realtime
async def test_whatever_takes_too_long_is_cut(behaviour: Behaviour, within_s: float, why: str) -> None:
    """B14: silence before the answer, a pause in it, drops of it: each has its own limit, and the connection ends."""
    began = asyncio.get_running_loop().time()
    async with wild_server(behaviour) as server, client() as http:
        end = await ask(pool_of(http, server), within_s=within_s)
        assert end == HttpFailure(sent=True, detail=why)
        assert asyncio.get_running_loop().time() - began < ENOUGH_S
        if behaviour is not reads_nothing:
            await server.all_ended()


# --- connections


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
