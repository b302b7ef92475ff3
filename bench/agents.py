"""The agents of a measurement: they answer at once. One process, one link each, and a socket for direct calls."""

from __future__ import annotations

import asyncio
import contextlib
import os
from multiprocessing.connection import Connection
from typing import Final

import uvloop

from bench import messages
from bench.wire import Wire, connect_to_gate, listen

BEAT_S: Final = 1.0


def main(gate_port: int, parent: Connection) -> None:
    """Tell the parent the port for direct calls once all agents are registered; serve until it hangs up."""
    uvloop.run(_serve(gate_port, parent))


async def _serve(gate_port: int, parent: Connection) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(parent.fileno(), over.set)
    agents = [await BenchAgent.connect(name, gate_port) for name in messages.AGENTS]
    parent.send(await listen(_answer_directly))
    while not over.is_set():
        for agent in agents:
            agent.beat()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), BEAT_S)


class BenchAgent:
    """One instance of one agent."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._seq = 0
        self._welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wire: Wire

    @classmethod
    async def connect(cls, name: str, gate_port: int) -> BenchAgent:
        """Register with the gate."""
        agent = cls(name)
        agent._wire = await connect_to_gate(gate_port, agent._on_message)
        agent._wire.post(messages.hello(name, f"{name}.{os.urandom(4).hex()}", messages.card(name)))
        agent._wire.flush()
        async with asyncio.timeout(5):
            await agent._welcomed
        return agent

    def beat(self) -> None:
        """Say that it is there."""
        if self._wire.closed:
            raise ConnectionError(f"{self._name} lost the gate: {self._wire.closed}")
        self._wire.post(messages.beat())
        self._wire.flush()

    def _on_message(self, wire: Wire, data: bytes) -> None:
        read = messages.read_work(data)
        for work in read if isinstance(read, list) else (read,):
            if work.method == "invoke":
                self._answer(wire, work)
            elif work.id == "hello":
                self._greeted(work)

    def _answer(self, wire: Wire, work: messages.Work) -> None:
        seq = 0
        if work.params is not None and work.params.effect == "write":
            self._seq += 1
            seq = self._seq
        wire.post(messages.answer(str(work.id), seq))

    def _greeted(self, work: messages.Work) -> None:
        if work.error is None:
            self._welcomed.set_result(None)
        else:
            self._welcomed.set_exception(ConnectionError(f"{self._name} was refused: {work.error}"))


def _answer_directly(wire: Wire, data: bytes) -> None:
    read = messages.read_work(data)
    for work in read if isinstance(read, list) else (read,):
        wire.post(messages.outcome(str(work.id)))
