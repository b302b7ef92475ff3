"""A gate that does what a test says: it speaks the link's protocol in memory, and keeps what it hears."""

from __future__ import annotations

import asyncio
import functools
import json
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec

import msgspec

from agentgate import Agent, Context
from agentgate.model import Outcome
from agentgate.model.link import (
    PROBE_ID,
    AckParams,
    Answer,
    CallParams,
    DrainParams,
    InvokeParams,
    ProbeAnswer,
    ProbeParams,
    StopKind,
    StopParams,
    Welcome,
)
from agentgate.sdk.connection import LinkClosed
from agentgate.sdk.greeting import Identity
from agentgate.sdk.host import AgentHost
from agentgate.sdk.link import Link, LinkOptions
from agentgate.testing import run_virtual

P = ParamSpec("P")

PATIENCE_S = 60.0  # virtual: what has not come by then does not come


class Wire:
    """One connection, seen from both ends."""

    def __init__(self, gate: ScriptedGate) -> None:
        self._gate = gate
        self._down: asyncio.Queue[bytes | None] = asyncio.Queue(1000)
        self.sent: list[Any] = []  # whole messages, as the SDK sent them
        self.over = False
        self.closed_by_sdk = False
        self.muted = False
        self.stalled = asyncio.Event()
        self.stalled.set()

    # The SDK's end.

    async def send(self, data: bytes) -> None:
        await self.stalled.wait()
        if self.over:
            raise LinkClosed("cut")
        message = json.loads(data)
        self.sent.append(message)
        for frame in message if isinstance(message, list) else [message]:
            self._gate.hear(self, frame)

    async def recv(self) -> bytes:
        data = await self._down.get()
        if data is None:
            self.over = True
            raise LinkClosed("cut")
        return data

    async def close(self) -> None:
        self.closed_by_sdk = self.over = True
        self._down.put_nowait(None)

    # The gate's end.

    def put(self, data: bytes) -> None:
        if not self.muted:
            self._down.put_nowait(data)

    def cut(self) -> None:
        self.over = True
        self._down.put_nowait(None)


class ScriptedGate:
    """Welcomes whoever connects and answers beats; everything else is the test's."""

    def __init__(self, **welcome: Any) -> None:
        self.welcome = Welcome(**{"session": "s", "gateway": "g", "gateway_epoch": 1, **welcome})
        self.refusal: dict[str, Any] | None = None  # a JSON-RPC error instead of the welcome
        self.listens = True
        self.answers_hello = True
        self.acked = 0
        self.wires: list[Wire] = []
        self.tries: list[float] = []
        self.beats: list[dict[str, Any]] = []
        self.heard: deque[dict[str, Any]] = deque(maxlen=1000)  # not yet expected, beats aside
        self._news = asyncio.Event()

    async def connect(self) -> Wire:
        """A `Connect` for the SDK."""
        self.tries.append(asyncio.get_running_loop().time())
        if not self.listens:
            raise ConnectionRefusedError("nobody listens")
        self.wires.append(Wire(self))
        return self.wires[-1]

    @property
    def wire(self) -> Wire:
        """The newest connection."""
        return self.wires[-1]

    def hear(self, wire: Wire, frame: dict[str, Any]) -> None:
        assert frame["jsonrpc"] == "2.0"
        if frame.get("method") == "beat":
            self.beats.append(frame["params"])
            self._news.set()
            self.send({"method": "ack", "params": AckParams(seq=self.acked)})
            return
        if frame.get("method") == "hello" and self.answers_hello:
            answer = {"result": self.welcome} if self.refusal is None else {"error": self.refusal}
            wire.put(encoded({"id": frame["id"], **answer}))
        self.heard.append(frame)
        self._news.set()

    def send(self, *messages: dict[str, Any]) -> None:
        """Send messages as one frame."""
        frames = [{"jsonrpc": "2.0", **message} for message in messages]
        self.wire.put(msgspec.json.encode(frames if len(frames) > 1 else frames[0]))

    def invoke(self, unit: str, task_type: str, payload: Any = None, **params: Any) -> None:
        params = {"caller": "test", "key": f"test:{task_type}:{unit}:run", "remaining_ms": 30_000, **params}
        invoked = InvokeParams(task_type=task_type, payload=payload, **params)
        self.send({"id": unit, "method": "invoke", "params": invoked})

    def stop(self, unit: str, kind: StopKind) -> None:
        self.send({"method": "stop", "params": StopParams(unit=unit, kind=kind)})

    async def probe(self, *units: str) -> ProbeAnswer:
        """Ask how these units are; the next message has to be the answer."""
        self.send({"id": PROBE_ID, "method": "probe", "params": ProbeParams(units=units)})
        frame = await self._next()
        assert frame.get("id") == PROBE_ID, frame
        return msgspec.convert(frame["result"], ProbeAnswer)

    def drain(self, *, restart: bool = False) -> None:
        self.send({"method": "drain", "params": DrainParams(reason="test", restart=restart)})

    def ack(self, seq: int) -> None:
        self.acked = seq
        self.send({"method": "ack", "params": AckParams(seq=seq)})

    def settle(self, call: dict[str, Any], outcome: Outcome) -> None:
        self.send({"id": call["id"], "result": outcome})

    async def expect(self, method: str) -> dict[str, Any]:
        """The next message, which has to be of this method."""
        frame = await self._next()
        assert frame.get("method") == method, frame
        return frame

    async def hello(self) -> dict[str, Any]:
        """The parameters of the next hello."""
        params: dict[str, Any] = (await self.expect("hello"))["params"]
        return params

    async def call(self) -> dict[str, Any]:
        return await self.expect("call")

    async def answer(self, unit: str) -> Answer:
        """The next message, which has to be the answer of this unit."""
        frame = await self._next()
        assert frame.get("id") == unit, frame
        assert "method" not in frame, frame
        return msgspec.convert(frame["result"], Answer)

    async def lag(self, above_ms: float) -> None:
        """Wait for a beat that tells of so much lag."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.beats or self.beats[-1].get("lag_ms", 0.0) <= above_ms:
                self._news.clear()
                await self._news.wait()

    async def _next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while not self.heard:
                self._news.clear()
                await self._news.wait()
        return self.heard.popleft()

    def silent(self) -> bool:
        """Whether everything that was heard was expected."""
        return not self.heard


def encoded(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message})


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test that is a coroutine in virtual time."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(test, *args, **kwargs)

    return run


class Hosted:
    """An agent at work on the test's own loop."""

    def __init__(self, agent: Agent, gate: ScriptedGate, options: LinkOptions | None = None) -> None:
        identity = Identity(agent=agent.name, instance="i1", card=agent.card())
        self.link = Link(gate.connect, identity, draw=lambda: 0.5, options=options)
        self.host = AgentHost(agent, self.link)
        self.running: asyncio.Task[None]

    async def run(self) -> None:
        async with self.host:
            await self.link.run()


@asynccontextmanager
async def hosted(agent: Agent, gate: ScriptedGate, options: LinkOptions | None = None) -> AsyncIterator[Hosted]:
    """Run an agent beside the test; at the end it is killed, unless it has left by itself."""
    running = Hosted(agent, gate, options)
    async with asyncio.TaskGroup() as group:
        running.running = group.create_task(running.run())
        yield running
        running.running.cancel()


READ = CallParams(target="b", task_type="t", effect="read")


def agent_of(release: asyncio.Event | None = None) -> Agent:
    """Handles `work`, which waits to be released, and `call`, which calls another agent."""
    agent = Agent("a")

    @agent.handles("work")
    async def work(payload: Any) -> Any:
        if release is not None:
            await release.wait()
        return payload

    @agent.handles("look", effect="read")
    async def look(payload: Any) -> Any:
        if release is not None:
            await release.wait()
        return payload

    @agent.handles("call")
    async def call(payload: Any, ctx: Context) -> Any:
        return await ctx.call("b", "t", "key", payload)

    return agent


def client(gate: ScriptedGate, **options: Any) -> Link:
    return Link(gate.connect, Identity(agent="c", instance="i"), draw=lambda: 0.5, options=LinkOptions(**options))


@dataclass
class Order:
    id: str
    n: int = 1


@dataclass
class Receipt:
    order: str
    shelf: str


def contains_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


UNSENDABLE = {
    "nan": math.nan,
    "inf": {"a": [math.inf]},
    "nul": "a\x00b",
    "surrogate": "\ud800",
    "object": object(),
    "large": "x" * 300_000,
    "cycle": contains_itself(),
    "keys": {(1,): 2},
}


async def answer_of(function: Any, payload: Any = None, **params: Any) -> Answer:
    """The answer of one unit of a handler, after which another unit of the same process has to work."""
    gate = ScriptedGate()
    agent = Agent("a")
    agent.handles("work")(function)

    @agent.handles("next")
    async def following(payload: Any) -> str:
        return "alive"

    async with hosted(agent, gate):
        await gate.hello()
        gate.invoke("u1", "work", payload, **params)
        answer = await gate.answer("u1")
        gate.invoke("u2", "next")
        assert (await gate.answer("u2")).value == "alive"
    return answer
