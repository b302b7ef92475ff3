"""What no call may carry is refused in the same words over the link and over HTTP (I6, FAILURES kind 13)."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.config import Settings
from agentgate.core.payload import PayloadOptions
from tests.sim.http_caller import HttpCaller
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play

LIMITS = PayloadOptions(bytes_max=1_000, depth_max=8)

REFUSED: dict[str, tuple[bytes, str, str]] = {
    "NUL, escaped": (rb'"a\u0000b"', "bad_request", "a NUL character"),
    "NaN": (b"[1,NaN]", "bad_request", "NaN or an infinity"),
    "infinity": (b"-Infinity", "bad_request", "NaN or an infinity"),
    "too large a number": (b"1e999", "bad_request", "beyond the range of a double"),
    "invalid UTF-8": (b'"\xff"', "bad_request", "not valid UTF-8"),
    "half a character": (rb'"\ud800"', "bad_request", "a lone surrogate"),
    "too deep": (b"[" * 9 + b"]" * 9, "bad_request", "nested deeper than 8 levels"),
    "too large": (b'"' + b"x" * 999 + b'"', "too_large", "the payload has 1001 bytes; at most 1000 are allowed"),
    "cut off": (b'{"a":', "bad_request", "not valid JSON"),
}
TAKEN: dict[str, bytes] = {
    "the largest": b'"' + b"x" * 998 + b'"',
    "the deepest": b"[" * 8 + b"]" * 8,
    "the text of an escape": rb'"a\\u0000b"',
    "white space beyond the size": b'"x"' + b" " * 2_000,
}
FORM = b'{"target":"bank","task_type":"pay","business_key":"o1","payload":%s}'


def frame(payload: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":"c1","method":"call","params":%s}' % (FORM % payload)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_alike(name: str) -> None:
    """Each limit has its own sentence and code, the same for both ways, and nothing reaches the agent."""
    payload, code, why = REFUSED[name]

    async def story() -> None:
        async with gate(settings=Settings(payload=LIMITS)) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            over_http = await HttpCaller(platform).post(FORM % payload)
            assert (over_http.code, over_http.status) == (code, 413 if code == "too_large" else 400)
            assert why in over_http.body["detail"]
            shop = WirePeer(platform, "shop").connect()
            shop.session.on_frame(frame(payload))
            await asyncio.sleep(1)
            if shop.closed_because:  # what is no JSON at all is no message either, which ends the connection
                [said] = [message["error"]["message"] for message in shop.messages if "error" in message]
                assert (code, why in said) == ("bad_request", True)
            else:
                [error] = [message["result"]["error"] for message in shop.messages if message.get("id") == "c1"]
                assert (error["code"], error["detail"]) == (code, over_http.body["detail"])
            assert bank.invoked.empty()

    play(story)


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_is_taken_alike(name: str) -> None:
    """The bounds themselves are inside, and only what would harm somebody is outside."""

    async def story() -> None:
        async with gate(settings=Settings(payload=LIMITS)) as platform:
            bank = WirePeer(platform, "bank", skills=SKILLS).connect()
            over_http = HttpCaller(platform).post(FORM % TAKEN[name])
            unit = await bank.next()
            bank.answer(unit, "paid")
            assert (await over_http).status == 200
            shop = WirePeer(platform, "shop").connect()
            shop.session.on_frame(frame(TAKEN[name]))
            assert (await bank.next()).params.payload == unit.params.payload

    play(story)
