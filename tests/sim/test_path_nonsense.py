"""Whatever comes over the link, it harms nobody else and leaves nothing behind (FAILURES kind 13)."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

from agentgate.app import Platform
from agentgate.config import Settings
from tests.sim.wire_peer import SKILLS, WirePeer, gate, play

NAMES = ("id", "unit", "key", "seq", "params", "value", "error", "agent", "instance", "card", "skills", "target")
METHODS = (None, "hello", "call", "cancel", "progress", "beat", "drain", "routes", "nope", 3)
WORDS = ("hello", "hello", "call", "call", "answer", "answer", "cancel", "progress", "drain", "beat", "routes")
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
            assert gateway.policies.slots.outstanding("bank") == 0

    play(story)


class Liar:
    """An agent that knows the words of the link, and says them in any order, about units and calls old and new."""

    def __init__(self, platform: Platform, draws: random.Random, number: int) -> None:
        self.reasons: list[str] = []
        self._draws = draws
        self._units = ["u0"]
        self._tokens = [""]
        self._name = draws.choice(("bank", "liar"))
        self._instance = f"liar-{number}-{self._name}"
        self._session = platform.gateway.connect(self._hear, self.reasons.append)

    def speak(self, word: str = "") -> None:
        """One message that is right by itself."""
        draws = self._draws
        word = word or draws.choice(WORDS)
        params: dict[str, Any] = {"id": "c1", "unit": draws.choice(self._units), "note": "n", "reason": "r"}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": f"c{draws.randrange(5)}", "method": word, "params": params}
        if word == "hello":
            message["params"] = self._hello()
        elif word == "call":
            message["params"] = a_call(draws) | {"token": draws.choice(self._tokens)}
        elif word == "answer":
            message = {"jsonrpc": "2.0", "id": draws.choice(self._units), "result": self._answer()}
        self._session.on_frame(json.dumps(message).encode())

    def leave(self) -> None:
        """Vanish."""
        self._session.closed()

    def _hello(self) -> dict[str, Any]:
        draws = self._draws
        units = [self._report(unit) for unit in self._units if draws.random() < 0.5]
        skills = [{"task_type": "look", "effect": "read"}, {"task_type": "pay"}][draws.randrange(2) :]
        card = {"agent": self._name, "concurrency": draws.choice((1, 8)), "skills": skills}
        return {"agent": self._name, "instance": self._instance, "card": card, "units": units, "calls": ["c1"]}

    def _report(self, unit: str) -> dict[str, Any]:
        report: dict[str, Any] = {"unit": unit, "token": self._draws.choice(self._tokens), "remaining_ms": 10**6}
        return report | ({"answer": self._answer()} if self._draws.random() < 0.5 else {})

    def _answer(self) -> dict[str, Any]:
        draws = self._draws
        error = {"code": draws.choice(("rejected", "overloaded", "internal", "x")), "fault": "refused", "sent": True}
        said: dict[str, Any] = {"value": nonsense(draws)} if draws.random() < 0.5 else {"error": error}
        return said | {"seq": draws.choice((0, 1, 2, 10**9, -1)), "unseen": draws.random() < 0.1}

    def _hear(self, data: bytes) -> None:
        said = json.loads(data)
        for message in said if isinstance(said, list) else [said]:
            if message.get("method") == "invoke":
                self._units.append(message["id"])
                self._tokens.append(message["params"]["token"])


def test_the_words_of_the_link_in_any_order_harm_nobody_else() -> None:
    """B14, I6: units answered twice, by others, or never, and hellos at any time: the gate keeps its books straight."""

    async def story() -> None:
        draws = random.Random(2)
        settings = Settings(mechanisms={"circuit_breaker": "off"})  # it would spare the agents most of it
        async with gate(settings=settings) as platform:
            client = WirePeer(platform, "shop").connect()
            for number in range(400):
                liar = Liar(platform, draws, number)
                if draws.random() < 0.8:
                    liar.speak("hello")
                calls = [client.call(name, "pay", f"k{number}", timeout_ms=50) for name in ("bank", "liar", "liar")]
                for _ in range(15):
                    liar.speak()
                    await asyncio.sleep(draws.choice((0, 0, 0.01)))
                liar.leave()
                assert "a message could not be handled" not in liar.reasons
                del calls
            await asyncio.sleep(60)
            agent = WirePeer(platform, "bank", skills=SKILLS).connect()
            call = client.call("bank", "pay", "alive")
            agent.answer(await agent.next(), "paid")
            assert (await call).value == "paid"
            await asyncio.sleep(1)
            gateway = platform.gateway
            assert "internal" not in gateway.counters.outcomes
            assert (len(gateway.peers), len(gateway.flights), len(gateway.units)) == (2, 0, 0)
            assert gateway.counters.attempts > 100, "the story has to reach the agents"
            assert (gateway.policies.slots.outstanding("bank"), gateway.policies.slots.outstanding("liar")) == (0, 0)

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
