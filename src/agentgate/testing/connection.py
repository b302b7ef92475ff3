"""A network in memory: connections between an SDK and a gate, with latency and faults drawn from a seed.

Each direction is a reliable stream, as TCP is: what arrives, arrives whole and in order. Therefore a frame cannot be
lost in the middle; a connection fails in the ways that real ones do:

- `slow`: a frame, and all behind it, arrives late.
- `double`: a frame arrives twice in a row (a peer that sent it again; both ends must recognise it).
- `cut`: the connection ends; frames in flight are lost, both ends hear of it.
- `mute`: from now on a direction swallows everything. Nobody is told; silence has to be noticed.

A process may be paused as well (`AgentEnd.hold`): nothing leaves it and nothing reaches it until it goes on. When the
gate closes a connection meanwhile, what the process had not read yet is lost, as after a TCP reset.

The agent's end is a `Connection` of the SDK (send, recv, close); the gate's end calls a session as the server does.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

FRAMES_IN_FLIGHT_MAX = 100_000  # far above what any run needs: beyond it somebody sends without reading
TICK_S = 1e-9  # a timer may fire this much early: the loop's resolution

Direction = Literal["up", "down"]  # up: towards the gate
Watch = Callable[[Direction, "AgentEnd", bytes], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Weather:
    """How connections behave. Shares are chances per frame; latency is drawn evenly between its bounds."""

    latency_s: tuple[float, float] = (0.0005, 0.005)  # a data centre and its neighbour
    slow_share: float = 0.0
    slow_s: float = 1.0  # below the silence after which a link counts as dead
    double_share: float = 0.0
    cut_share: float = 0.0
    mute_share: float = 0.0


CALM = Weather()


class Session(Protocol):
    """What the gate makes of one connection."""

    def on_frame(self, data: bytes | str) -> None:
        """A frame arrived."""
        ...

    def closed(self) -> None:
        """The connection ended."""
        ...


Listen = Callable[[Callable[[bytes], None], Callable[[str], None]], Session]


class Network:
    """Connects agents to the gate that listens now, if one does.

    `watch` sees every frame at the gate's end: as it arrives, and as it is sent.
    """

    def __init__(self, draws: random.Random, *, watch: Watch | None = None) -> None:
        self.draws = draws
        self.weather = CALM
        self.watch = watch
        self._listen: Listen | None = None
        self._open: dict[int, AgentEnd] = {}
        self._dialled = 0

    def listen(self, listen: Listen) -> None:
        """A gate takes connections from now on."""
        self._listen = listen

    def gate_died(self) -> None:
        """The gate's process is gone: nobody listens, every connection is cut."""
        self._listen = None
        for connection in list(self._open.values()):
            connection.gate_died()

    async def dial(self, name: str, process: str = "") -> AgentEnd:
        """Connect, after a round trip; raises `ConnectionRefusedError` when no gate listens."""
        await asyncio.sleep(self.latency_s() + self.latency_s())
        if self._listen is None:
            raise ConnectionRefusedError("no gate listens")
        self._dialled += 1
        connection = AgentEnd(self, name, process or name, self._dialled)
        self._open[self._dialled] = connection
        connection.accepted(self._listen)
        return connection

    def latency_s(self) -> float:
        """How long the next frame takes, faults aside."""
        return self.draws.uniform(*self.weather.latency_s)

    def chance(self, share: float) -> bool:
        """Whether something with this share happens now; what cannot happen draws nothing."""
        return share > 0 and self.draws.random() < share

    def ended(self, number: int) -> None:
        """A connection is over at the gate's end."""
        self._open.pop(number, None)

    @property
    def open_connections(self) -> int:
        """How many connections the gate still holds."""
        return len(self._open)


class AgentEnd:
    """The agent's end of a connection, and its controls for a simulation."""

    def __init__(self, network: Network, name: str, process: str, number: int) -> None:
        self.name = name
        self.process = process
        self._network = network
        self._number = number
        self._session: Session | None = None
        self._up = _Stream(network, self._arrive_at_gate)
        self._down = _Stream(network, self._arrive_at_agent)
        self._inbox: deque[bytes] = deque(maxlen=FRAMES_IN_FLIGHT_MAX)
        self._news = asyncio.Event()
        self._over = False  # for the agent

    @property
    def is_open_at_gate(self) -> bool:
        """Whether the gate has a session for it."""
        return self._session is not None

    @property
    def is_sound(self) -> bool:
        """Whether both ends hold it, and what is sent arrives."""
        streams = (self._up, self._down)
        return not self._over and self._session is not None and not any(one.muted or one.held for one in streams)

    def accepted(self, listen: Listen) -> None:
        """The gate takes the connection."""
        self._session = listen(self._send_from_gate, self._close_from_gate)

    # What the SDK uses.

    async def send(self, data: bytes | str) -> None:
        """Hand a frame to the network."""
        if self._over:
            raise ConnectionResetError("the connection ended")
        self._transfer(self._up, data.encode() if isinstance(data, str) else data)

    async def recv(self) -> bytes:
        """The next frame; raises `ConnectionResetError` after the last."""
        while not self._inbox:
            if self._over:
                raise ConnectionResetError("the connection ended")
            self._news.clear()
            await self._news.wait()
        return self._inbox.popleft()

    async def close(self) -> None:
        """End the connection: frames already sent still arrive."""
        self._end_at_agent()

    # What a simulation uses.

    def cut(self) -> None:
        """The connection breaks, frames in flight are lost."""
        for stream in (self._up, self._down):
            stream.drop()
            stream.push(None)

    def mute(self, direction: Direction) -> None:
        """This direction swallows everything from now on, its end included."""
        (self._up if direction == "up" else self._down).muted = True

    def hold(self) -> None:
        """The agent's process stands still."""
        self._up.held = self._down.held = True

    def release(self) -> None:
        """The agent's process goes on."""
        self._up.release()
        self._down.release()

    def agent_died(self) -> None:
        """The agent's process is gone: what it sent still arrives, then the end."""
        self._up.release()
        self._end_at_agent()
        self._inbox.clear()

    def gate_died(self) -> None:
        """The gate's process is gone: what it sent still arrives, then the end; nobody hears what is sent to it."""
        self._session = None
        self._up.drop()
        self._up.muted = True
        self._down.push(None)
        self._network.ended(self._number)

    def _transfer(self, stream: _Stream, data: bytes) -> None:
        weather = self._network.weather
        if self._network.chance(weather.cut_share):
            self.cut()
            return
        if self._network.chance(weather.mute_share):
            stream.muted = True
        stream.push(data)
        if self._network.chance(weather.double_share):
            stream.push(data)

    def _send_from_gate(self, data: bytes) -> None:
        if self._session is None:
            return
        if self._network.watch is not None:
            self._network.watch("down", self, data)
        self._transfer(self._down, data)

    def _close_from_gate(self, _: str) -> None:
        """As a server does: what was sent before still arrives, and the session hears that it is over."""
        self._up.drop()
        self._up.muted = True
        if self._down.held:
            self._down.drop()
        self._down.push(None)
        asyncio.get_running_loop().call_soon(self._end_at_gate)

    def _arrive_at_gate(self, data: bytes | None) -> None:
        if data is None:
            self._end_at_gate()
        elif self._session is not None:
            if self._network.watch is not None:
                self._network.watch("up", self, data)
            self._session.on_frame(data)

    def _end_at_gate(self) -> None:
        session, self._session = self._session, None
        self._network.ended(self._number)
        if session is not None:
            session.closed()

    def _arrive_at_agent(self, data: bytes | None) -> None:
        if data is None:
            self._over = True
        elif not self._over:
            assert len(self._inbox) < FRAMES_IN_FLIGHT_MAX, "nobody reads this connection"
            self._inbox.append(data)
        self._news.set()

    def _end_at_agent(self) -> None:
        if not self._over:
            self._over = True
            self._up.push(None)
        self._down.drop()
        self._news.set()


class _Stream:
    """One direction: frames arrive in the order of sending, each after its latency. None is the end of the stream."""

    def __init__(self, network: Network, arrive: Callable[[bytes | None], None]) -> None:
        self._network = network
        self._arrive = arrive
        self._loop = asyncio.get_running_loop()
        self._flight: deque[tuple[float, bytes | None]] = deque(maxlen=FRAMES_IN_FLIGHT_MAX)
        self._last_at = 0.0
        self.muted = False
        self.held = False

    def push(self, data: bytes | None) -> None:
        if self.muted:
            return
        assert len(self._flight) < FRAMES_IN_FLIGHT_MAX, "nobody reads this stream"
        wait_s = self._network.latency_s()
        if self._network.chance(self._network.weather.slow_share):
            wait_s += self._network.draws.uniform(0, self._network.weather.slow_s)
        self._last_at = max(self._last_at, self._loop.time() + wait_s)
        self._flight.append((self._last_at, data))
        self._loop.call_at(self._last_at, self._deliver)

    def drop(self) -> None:
        self._flight.clear()

    def release(self) -> None:
        self.held = False
        self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Hand over everything that is due; timers of equal times may come in any order, the frames may not."""
        while self._flight and not self.held and self._flight[0][0] <= self._loop.time() + TICK_S:
            self._arrive(self._flight.popleft()[1])
