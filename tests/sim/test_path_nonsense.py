"""Whatever comes over the link, it harms nobody else and leaves nothing behind (FAILURES kind 13)."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from tests.sim.wire_peer import SKILLS, WirePeer, gate, play

NAMES = ("id", "unit", "key", "seq", "params", "value", "error", "agent", "instance", "card", "skills", "target")
METHODS = (None, "hello", "call", "cancel", "progress", "beat", "drain", "routes", "nope", 3)
SESSIONS = 800


def nonsense(draws: random.Random, depth: int = 0) -> Any:
    """Any JSON value, not too deep."""
    kind = draws.randrange(8 if depth < 3 else 6)
    if kind == 6:
        return [nonsense(draws, depth + 1) for _ in range(draws.randrange(4))]
    if kind == 7:
        return {draws.choice(NAMES): nonsense(draws, depth + 1) for _ in range(draws.randrange(5))}
    return (
        None,
        True,
        draws.choice((draws.randrange(-5, 10**12), 10**400)),
        draws.random() * 1e9,
        "",
        draws.choice(("look", "bank", "é" * 300)),
    )[kind]


def a_call(draws: random.Random) -> dict[str, Any]:
    """Parameters of a call, some of which are right."""
    return {
        "target": draws.choice(("bank", "skill:look", "evil", "")),
        "task_type": draws.choice(("look", "pay", "x", "")),
        "business_key": draws.choice(("", "k", "\0")),
        "payload": nonsense(draws),
        "effect": draws.choice(("read", "write", "zap")),
        "timeout_ms": draws.choice((0, -5, 10**15, 10**400, -(10**400), 1, None, 500)),
        "age_ms": draws.choice((0, 10, 10**400, -5)),
        "priority": draws.choice((-1, 99, 5)),
        "token": draws.choice(("", "x", "é")),
        "traceparent": draws.choice(("", "zz")),
    }


def a_frame(draws: random.Random, number: int) -> bytes:
    """A message, half a message, two of them, or bytes."""
    if draws.random() < 0.05:
        return draws.randbytes(30)
    params = a_call(draws) if draws.random() < 0.3 else nonsense(draws)
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": draws.choice((f"c{number}", 1, "x", None)),
        "method": draws.choice(METHODS),
    }
    message |= {"params": params} if draws.random() < 0.8 else {"result": nonsense(draws)}
    text = json.dumps({name: value for name, value in message.items() if value is not None})
    if draws.random() < 0.1:
        text = text[: draws.randrange(len(text))]
    return (f"[{text},{text}]" if draws.random() < 0.1 else text).encode()


def test_nonsense_on_the_link_harms_nobody_else() -> None:
    """B14, I6: no frame ends in an error of the gate's own; others go on, and everything taken is given back."""

    async def story() -> None:
        draws = random.Random(1)
        async with gate() as platform:
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            client = WirePeer(platform, "shop").connect()
            for number in range(SESSIONS):
                reasons: list[str] = []
                session = platform.gateway.connect(lambda _data: None, reasons.append)
                hello = {"agent": "evil", "instance": f"evil-{number}"}
                if draws.random() < 0.7:
                    session.on_frame(json.dumps({"jsonrpc": "2.0", "id": "h", "method": "hello", "params": hello}))
                for _ in range(5):
                    session.on_frame(a_frame(draws, number))
                session.closed()
                assert "a message could not be handled" not in reasons
                await asyncio.sleep(0)
            call = client.call("bank", "pay", "alive")
            while (unit := await agent.next()).params.caller != "shop":
                agent.answer(unit, "whatever")
            agent.answer(unit, "paid")
            assert (await call).value == "paid"
            await asyncio.sleep(60)
            gateway = platform.gateway
            assert "internal" not in gateway.counters.outcomes
            assert (len(gateway.peers), len(gateway.flights), len(gateway.units)) == (2, 0, 0)
            assert gateway.slots.outstanding("bank") == 0

    play(story)


def test_a_connection_without_a_hello_makes_room() -> None:
    """B14: whoever connects says who it is within ten seconds, or is sent away; who has said it stays."""

    async def story() -> None:
        async with gate() as platform:
            reasons: list[str] = []
            platform.gateway.connect(lambda _data: None, reasons.append)
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            await asyncio.sleep(9)
            assert reasons == []
            await asyncio.sleep(2)
            assert reasons == ["no hello came within 10 s"]
            assert agent.closed_because == ""

    play(story)
