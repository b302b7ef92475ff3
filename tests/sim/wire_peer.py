"""A process that speaks the link by hand, message by message, to a real gate on virtual time.

What an SDK would never do (answer twice, answer late, vanish, come back) is one line here.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from agentgate.adapters.memory.span_store import MemorySpanStore
from agentgate.adapters.memory.store import MemoryStore
from agentgate.app import Platform, Ports, build
from agentgate.config import Settings
from agentgate.model import NEIGHBOUR, Card, Identity, Outcome, Skill, problem
from agentgate.model.link import Answer, InvokeParams, LockReport, UnitReport
from agentgate.ports.store import Store
from agentgate.testing.loop import run_virtual
from agentgate.testing.ports import SeededChance, VirtualClock

READ = Skill(task_type="look", effect="read")
WRITE = Skill(task_type="pay")
CHECKED = Skill(task_type="ship", check=True)
CHECK = Skill(task_type="check:ship", effect="read")
REPEATABLE = Skill(task_type="tag", repeatable=True)
SKILLS = (READ, WRITE, CHECKED, CHECK, REPEATABLE)


STORY_S = 120.0  # of virtual time: a story that is not over by then never will be


def play(story: Callable[[], Coroutine[Any, Any, None]], *, seconds: float = STORY_S) -> None:
    """Run a story on virtual time."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await story()

    run_virtual(bounded)


@asynccontextmanager
async def gate(
    store: Store | None = None, *, seed: int = 1, settings: Settings | None = None
) -> AsyncIterator[Platform]:
    """A real platform on the running (virtual) loop."""
    loop = asyncio.get_running_loop()
    ports = Ports(
        clock=VirtualClock(loop.time),
        chance=SeededChance(random.Random(seed)),
        store=store or MemoryStore(),
        spans=MemorySpanStore(),
    )
    async with build(settings or Settings(), ports) as platform:
        yield platform


class Invoked:
    """A unit that arrived."""

    def __init__(self, unit: str, params: InvokeParams) -> None:
        self.unit = unit
        self.params = params


class WirePeer:
    """One process. With skills it is an instance of an agent, without a client."""

    _instances = itertools.count(1)

    def __init__(
        self,
        platform: Platform,
        name: str,
        *,
        skills: tuple[Skill, ...] = (),
        concurrency: int = 8,
        tier: Any = "standard",
        identity: Identity = NEIGHBOUR,
        instance: str = "",
        pid: int = 0,
    ) -> None:
        self.platform = platform
        self.name = name
        self.identity = identity
        self.instance = instance or f"{name}-{next(self._instances)}"
        self.pid = pid
        self.card = Card(agent=name, skills=skills, concurrency=concurrency, tier=tier) if skills else None
        self.invoked: asyncio.Queue[Invoked] = asyncio.Queue(1000)
        self.messages: list[dict[str, Any]] = []
        self.closed_because = ""
        self.acked = 0
        self.locks: dict[str, dict[str, Any]] = {}  # requests for locks, by id, in order
        self._calls: dict[str, asyncio.Future[Outcome]] = {}
        self._said: dict[str, dict[str, Any]] = {}  # the parameters of those calls
        self._call_ids = itertools.count(1)
        self._seqs = itertools.count(1)
        self._beats: asyncio.Task[None] | None = None
        self.lag_ms = 0.0  # what its beats and its answers to probes say
        self.health: dict[str, str] | None = None  # what it answers to probes; None: it does not know the question

    def connect(self, *, units: tuple[UnitReport, ...] = (), locks: tuple[LockReport, ...] = ()) -> WirePeer:
        """Open a (new) connection and say hello."""
        self.closed_because = ""
        self.session = self.platform.gateway.connect(self._receive, self._closed, self.identity)
        hello = {
            "agent": self.name,
            "instance": self.instance,
            "units": units,
            "locks": locks,
            "calls": list(self._calls),
            "pid": self.pid,
            **({"card": self.card} if self.card else {}),
        }
        self.send(method="hello", id="hello", params=hello)
        if self._beats is None:
            self._beats = asyncio.get_running_loop().create_task(self._beat())
        return self

    def leave(self) -> None:
        """Vanish: the connection ends, and no beat comes any more."""
        self.fall_silent()
        self.session.closed()

    def fall_silent(self) -> None:
        """Keep the connection, but send nothing any more."""
        if self._beats is not None:
            self._beats.cancel()
            self._beats = None

    def send(self, **message: Any) -> None:
        """Send one message as it is."""
        self.session.on_frame(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    def call(
        self, target: str, task_type: str, key: str = "", payload: Any = None, **more: Any
    ) -> asyncio.Future[Outcome]:
        """Start a call; the future is its outcome."""
        return self.ask("call", target=target, task_type=task_type, business_key=key, payload=payload, **more)

    def ask(self, method: str, request_id: str = "", **params: Any) -> asyncio.Future[Outcome]:
        """Send a request of this process, perhaps under the id of an earlier one; the future is its outcome."""
        request_id = request_id or f"{self.instance}-{method}-{next(self._call_ids)}"
        if request_id not in self._calls:
            self._calls[request_id] = asyncio.get_running_loop().create_future()
        self._said[request_id] = {"method": method, "params": params}
        self.send(id=request_id, **self._said[request_id])
        return self._calls[request_id]

    def send_calls_again(self) -> None:
        """On a new connection: every call that is still waited for, under its id."""
        for call_id in self._calls:
            self.send(id=call_id, **self._said[call_id])

    def cancel_calls(self) -> None:
        """Give up every call that is still waited for."""
        for call_id in self._calls:
            self.send(method="cancel", params={"id": call_id})

    def lock(self, *names: str, token: str = "", **more: Any) -> asyncio.Future[Outcome]:
        """Ask for locks; the future is the outcome."""
        lock_id = f"{self.instance}-lock-{next(self._call_ids)}"
        answered = self._calls[lock_id] = asyncio.get_running_loop().create_future()
        self.locks[lock_id] = {"names": names, "token": token, **more}
        self.ask_again(lock_id)
        return answered

    def ask_again(self, lock_id: str) -> None:
        """Send a request for locks, for the first time or once more."""
        self.send(method="lock", id=lock_id, params=self.locks[lock_id])

    def forget(self, lock_id: str) -> None:
        """Wait no longer for this request, without a word."""
        del self._calls[lock_id]

    @property
    def last_lock(self) -> str:
        """The id of the last request for locks."""
        return next(reversed(self.locks))

    def unlock(self, lock_id: str) -> None:
        """Give back what this request holds."""
        self.send(method="unlock", params={"id": lock_id})

    def read(self, target: str, payload: Any = None, **more: Any) -> asyncio.Future[Outcome]:
        """Start a read."""
        return self.call(target, "look", "", payload, effect="read", **more)

    def answer(self, invoked: Invoked, value: Any = None, *, error: str = "", sent: bool = True, **more: Any) -> int:
        """Answer a unit; returns the number the answer carries."""
        seq = next(self._seqs) if invoked.params.effect == "write" else 0
        said = Answer(value=value, seq=seq, error=problem(error, sent=sent, **more) if error else None)
        self.send(id=invoked.unit, result=said)
        return seq

    async def next(self) -> Invoked:
        """The next unit that arrives."""
        return await self.invoked.get()

    def running(self, invoked: Invoked) -> UnitReport:
        """The report of a unit that still runs."""
        params = invoked.params
        return UnitReport(unit=invoked.unit, key=params.key, token=params.token, remaining_ms=params.remaining_ms)

    def finished(self, invoked: Invoked, value: Any) -> UnitReport:
        """The report of an answer that nobody has acknowledged."""
        return msgspec.structs.replace(self.running(invoked), answer=Answer(value=value, seq=next(self._seqs)))

    def reports(self, state: str, invoked: Invoked) -> tuple[UnitReport, ...]:
        """What a hello says of a unit in this state."""
        if state == "running":
            return (self.running(invoked),)
        return (self.finished(invoked, "paid"),) if state == "finished" else ()

    def told(self, method: str) -> list[dict[str, Any]]:
        """The parameters of all messages of one method."""
        return [message["params"] for message in self.messages if message.get("method") == method]

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(2)
            self.send(method="beat", params={"lag_ms": self.lag_ms})

    def _receive(self, data: bytes) -> None:
        decoded = msgspec.json.decode(data)
        for message in decoded if isinstance(decoded, list) else [decoded]:
            self.messages.append(message)
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "invoke":
            self.invoked.put_nowait(Invoked(message["id"], msgspec.convert(message["params"], InvokeParams)))
        elif message.get("method") == "probe":
            self._take_probe(message)
        elif message.get("method") == "ack":
            self.acked = message["params"]["seq"]
        elif "method" not in message and message["id"] in self._calls:
            outcome = msgspec.convert(message["result"], Outcome)
            self._calls.pop(message["id"]).set_result(outcome)

    def _take_probe(self, message: dict[str, Any]) -> None:
        if self._beats is None:
            return  # silent
        if self.health is None:
            self.send(id=message["id"], error={"code": -32601, "message": "no such method"})
        else:
            self.send(id=message["id"], result={"units": self.health, "lag_ms": self.lag_ms})

    def note(self, invoked: Invoked, note: str) -> None:
        """A progress note."""
        self.send(method="progress", params={"unit": invoked.unit, "note": note})

    def _closed(self, reason: str) -> None:
        self.closed_because = reason or "closed"
