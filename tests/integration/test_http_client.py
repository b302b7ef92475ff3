"""The HTTP client against servers that do everything wrong: each request ends in time, and no socket is left."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.model import HttpAnswer, HttpEnd, HttpFailure
from tests.integration.realtime import realtime
from tests.integration.short_client import ENOUGH_S, HEAD, ask, client, pool_of, reads_nothing, saying, silent
from tests.integration.wild_server import Behaviour, Visit, WildServer, ok, wild_server


async def one_answer(behaviour: Behaviour, *, within_s: float = ENOUGH_S) -> tuple[HttpEnd, WildServer]:
    """One request to a server; afterwards every connection has been closed from this side or from that."""
    async with wild_server(behaviour) as server, client() as http:
        pool = pool_of(http, server)
        end = await ask(pool, within_s=within_s)
        pool.close()
        await server.all_ended()
    return end, server


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


@realtime
async def test_a_request_that_was_sent_stays_sent() -> None:
    """C4: a kept connection breaks after the request has gone, and there is no other one: it may have been acted on."""

    async def once(visit: Visit) -> None:
        await visit.request()
        await visit.say(ok(b"[1]"))
        await visit.request()
        gone.set()
        await leave.wait()

    gone, leave = asyncio.Event(), asyncio.Event()
    async with client() as http:
        async with wild_server(once) as server:
            pool = pool_of(http, server)
            assert isinstance(await ask(pool), HttpAnswer)
            ended: asyncio.Future[HttpEnd] = asyncio.get_running_loop().create_future()
            until = asyncio.get_running_loop().time() + ENOUGH_S
            pool.send(b"POST / HTTP/1.1\r\n\r\n", ended.set_result, until=until, may_repeat=True)
            await gone.wait()
            leave.set()
        end = await ended
        assert isinstance(end, HttpFailure)
        assert end.sent
        pool.close()


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
    "an upgrade": (saying(b"HTTP/1.1 101 Go\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"), "another protocol"),
    "another coding": (saying(HEAD + b"transfer-encoding: gzip\r\n\r\n[1]"), "transferred as 'gzip'"),
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


async def stops(visit: Visit) -> None:
    await visit.request()
    await visit.say(HEAD + b"content-length: 100\r\n\r\n[1")
    await visit.hang()


async def drips(visit: Visit) -> None:
    await visit.request()
    await visit.drip(HEAD + b"content-length: 500\r\n\r\n" + b"1" * 500, 0.1)


async def continues(visit: Visit) -> None:
    await visit.request()
    for _ in range(2):
        await visit.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.2)
    await visit.hang()


@pytest.mark.parametrize(
    ("behaviour", "within_s", "why"),
    [
        (silent, 0.6, "no answer came in the time that was left"),
        (reads_nothing, 0.6, "no answer came in the time that was left"),
        (stops, ENOUGH_S, "the answer stopped for 0.5 s"),
        (continues, 1.5, "no answer came in the time that was left"),
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
