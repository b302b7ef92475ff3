"""The clients of a measurement: many senders in one process, at full load or at a steady rate.

At full load each sender keeps a few calls in flight and sends the next when one is answered. At a steady rate calls
leave by the clock, whatever comes back; a call's time runs from the moment it is sent.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Final

import psutil
import uvloop
from msgspec import Struct

from bench import messages
from bench.agents import BEAT_S
from bench.wire import Wire, connect_directly, connect_to_gate

SENDERS: Final = 64
IN_FLIGHT: Final = 256
STEADY_PER_S: Final = 1000.0
PROBES_PER_S: Final = 200.0
PROBERS: Final = 8
TICK_S: Final = 0.001
LEFT_OVER_S: Final = 10.0  # for calls that are still out when a phase ends

Frame = Callable[[str, str], bytes]
Done = Callable[["Sender", float], None]


class Plan(Struct, frozen=True, kw_only=True):
    """What the load process is asked to do."""

    gate_port: int
    direct_port: int
    gate_pid: int
    rounds: int
    phase_s: float
    warm_up_s: float


class Round(Struct, frozen=True, kw_only=True):
    """What one round came to. Latencies in seconds, as measured by the caller."""

    read_calls: int
    read_s: float
    read_cpu_s: float
    keyed_calls: int
    keyed_s: float
    keyed_cpu_s: float
    direct_latencies: list[float]
    gate_latencies: list[float]
    steady_cpu_s: float
    keyed_latencies_beside: list[float]


class Sender:
    """One link, and the calls of it that are out."""

    ids = itertools.count(1)

    def __init__(self) -> None:
        self.wire: Wire
        self.failures: list[str] = []
        self.is_greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._out: dict[str, tuple[float, Done]] = {}
        self._targets = itertools.cycle(messages.AGENTS)

    @property
    def out(self) -> int:
        """How many calls have no answer yet."""
        return len(self._out)

    def call(self, frame: Frame, done: Done) -> None:
        """Queue a call; `done` is told how long it took."""
        call_id = f"b{next(self.ids):x}"
        self.wire.post(frame(call_id, next(self._targets)))
        self._out[call_id] = (time.perf_counter(), done)

    def on_message(self, _wire: Wire, data: bytes) -> None:
        """Take answers."""
        now = time.perf_counter()
        read = messages.read_seen(data)
        for seen in read if isinstance(read, list) else (read,):
            sent_at, done = self._out.pop(str(seen.id), (now, _ignore))
            error = seen.error or (seen.result.error if seen.result is not None else None)
            if error is not None:
                self.failures.append(str(error))
            if seen.id == "hello":
                self.is_greeted.set_result(None)
            done(self, now - sent_at)


def main(plan: Plan, parent: Connection) -> None:
    """Run the rounds and send them to the parent."""
    parent.send(uvloop.run(_run(plan)))


async def _run(plan: Plan) -> list[Round]:
    through_gate = [await _greeted(f"sender-{number}", plan.gate_port) for number in range(SENDERS)]
    probers = [await _greeted(f"prober-{number}", plan.gate_port) for number in range(PROBERS)]
    direct = [await _direct(plan.direct_port) for _ in range(SENDERS)]
    beats = asyncio.get_running_loop().create_task(_beat([*through_gate, *probers]))
    try:
        bench = Bench(plan, through_gate, probers, direct)
        return [await bench.round() for _ in range(plan.rounds)]
    finally:
        beats.cancel()


class Bench:
    """The phases of a round."""

    def __init__(self, plan: Plan, gated: list[Sender], probers: list[Sender], direct: list[Sender]) -> None:
        self._plan = plan
        self._gated = gated
        self._probers = probers
        self._direct = direct
        self._gate = psutil.Process(plan.gate_pid)

    async def round(self) -> Round:
        """All phases once."""
        read_calls, read_s, read_cpu_s = await self._saturate(messages.read_call)
        keyed_calls, keyed_s, keyed_cpu_s = await self._saturate(messages.write_call)
        direct, _ = await self._steady(self._direct, messages.read_call, STEADY_PER_S)
        gated, steady_cpu_s = await self._steady(self._gated, messages.read_call, STEADY_PER_S)
        return Round(
            read_calls=read_calls,
            read_s=read_s,
            read_cpu_s=read_cpu_s,
            keyed_calls=keyed_calls,
            keyed_s=keyed_s,
            keyed_cpu_s=keyed_cpu_s,
            direct_latencies=direct,
            gate_latencies=gated,
            steady_cpu_s=steady_cpu_s,
            keyed_latencies_beside=await self._probe_beside_saturation(),
        )

    async def _saturate(self, frame: Frame) -> tuple[int, float, float]:
        """Calls answered at full load, in how much time, and the CPU time of the gate for them."""
        load = FullLoad(self._gated, frame)
        await asyncio.sleep(self._plan.warm_up_s)
        calls, began, cpu_s = load.answered, time.perf_counter(), cpu_time_s(self._gate)
        await asyncio.sleep(self._plan.phase_s)
        calls, elapsed_s, cpu_s = load.answered - calls, time.perf_counter() - began, cpu_time_s(self._gate) - cpu_s
        await load.stop()
        if not calls:
            raise RuntimeError("no call was answered during a phase: this machine is too busy to measure on")
        return calls, elapsed_s, cpu_s

    async def _steady(self, senders: Sequence[Sender], frame: Frame, per_s: float) -> tuple[list[float], float]:
        """Latencies at a steady rate, and the CPU time of the gate meanwhile."""
        await send_by_the_clock(senders, frame, per_s, self._plan.warm_up_s)
        cpu_s = cpu_time_s(self._gate)
        latencies = await send_by_the_clock(senders, frame, per_s, self._plan.phase_s)
        return latencies, cpu_time_s(self._gate) - cpu_s

    async def _probe_beside_saturation(self) -> list[float]:
        load = FullLoad(self._gated, messages.read_call)
        await asyncio.sleep(self._plan.warm_up_s)
        latencies = await send_by_the_clock(self._probers, messages.write_call, PROBES_PER_S, self._plan.phase_s)
        await load.stop()
        return latencies


class FullLoad:
    """As many calls in flight as asked for, from its making to its stop."""

    def __init__(self, senders: Sequence[Sender], frame: Frame) -> None:
        self.answered = 0
        self._senders = senders
        self._frame = frame
        self._is_over = False
        for sender in senders:
            for _ in range(IN_FLIGHT // len(senders)):
                sender.call(frame, self._done)
            sender.wire.flush()

    async def stop(self) -> None:
        """Send nothing more and wait for what is out."""
        self._is_over = True
        await _all_answered(self._senders)

    def _done(self, sender: Sender, _latency_s: float) -> None:
        self.answered += 1
        if not self._is_over:
            sender.call(self._frame, self._done)


async def send_by_the_clock(senders: Sequence[Sender], frame: Frame, per_s: float, seconds: float) -> list[float]:
    """Calls in turn from all senders; returns the latency of each."""
    latencies: list[float] = []
    turn = itertools.cycle(senders)
    sent = 0
    began = time.perf_counter()
    while (elapsed_s := time.perf_counter() - began) < seconds:
        while sent < elapsed_s * per_s:
            sender = next(turn)
            sender.call(frame, lambda _sender, latency_s: latencies.append(latency_s))
            sender.wire.flush()
            sent += 1
        await asyncio.sleep(TICK_S)
    await _all_answered(senders)
    return latencies


def cpu_time_s(process: psutil.Process) -> float:
    """User and system time of a process, its threads and its children, those that have ended included."""
    times = process.cpu_times()
    live = [child.cpu_times() for child in process.children(recursive=True)]
    total: float = times.user + times.system + times.children_user + times.children_system
    return total + sum(child.user + child.system for child in live)


def _ignore(_sender: Sender, _latency_s: float) -> None:
    """An answer to no call, such as to `hello`."""


async def _greeted(name: str, port: int) -> Sender:
    sender = Sender()
    sender.wire = await connect_to_gate(port, sender.on_message)
    sender.wire.post(messages.hello(name, f"{name}.1"))
    sender.wire.flush()
    async with asyncio.timeout(5):
        await sender.is_greeted
    return sender


async def _direct(port: int) -> Sender:
    sender = Sender()
    sender.wire = await connect_directly(port, sender.on_message)
    return sender


async def _all_answered(senders: Sequence[Sender]) -> None:
    """Wait for everything that is out; a failed call ends the measurement, which would mean nothing any more."""
    for _ in range(round(LEFT_OVER_S / TICK_S)):
        if not any(sender.out for sender in senders):
            break
        await asyncio.sleep(TICK_S)
    else:
        raise RuntimeError(f"{sum(sender.out for sender in senders)} calls were never answered")
    failures = [failure for sender in senders for failure in sender.failures]
    if failures:
        raise RuntimeError(f"{len(failures)} calls failed; the first: {failures[0]}")


async def _beat(senders: Sequence[Sender]) -> None:
    while True:
        await asyncio.sleep(BEAT_S)
        for sender in senders:
            sender.wire.post(messages.beat())
            sender.wire.flush()
