"""The simulated network fails as real connections do, and in no other way."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.testing.connection import AgentEnd, Direction, Network, Weather
from agentgate.testing.loop import run_virtual

ROUGH = Weather(slow_share=0.2, double_share=0.3)


class GateSide:
    """Keeps what arrives; a test sends with `send` and hangs up with `close`."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.closed_times = 0
        self.send: Callable[[bytes], None] = lambda _: None
        self.close: Callable[[str], None] = lambda _: None

    def accept(self, send: Callable[[bytes], None], close: Callable[[str], None]) -> GateSide:
        self.send, self.close = send, close
        return self

    def on_frame(self, data: bytes | str) -> None:
        self.frames.append(data if isinstance(data, bytes) else data.encode())

    def closed(self) -> None:
        self.closed_times += 1


async def connected(seed: int = 1, weather: Weather | None = None) -> tuple[Network, GateSide, AgentEnd]:
    network = Network(random.Random(seed))
    network.weather = weather or Weather()
    gate = GateSide()
    network.listen(gate.accept)
    return network, gate, await network.dial("agent")


async def drain(end: AgentEnd) -> list[bytes]:
    """Everything up to the end of the connection."""
    frames: list[bytes] = []
    while True:
        try:
            frames.append(await end.recv())
        except ConnectionResetError:
            return frames


def numbered(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


def without_doubles(frames: list[bytes]) -> list[bytes]:
    return [frame for frame, _ in itertools.groupby(frames)]


@given(seed=st.integers(0, 2**32))
def test_frames_arrive_in_order_both_ways(seed: int) -> None:
    """Delay and doubling change when and how often a frame arrives, never the order, and lose none."""

    async def main() -> None:
        _, gate, end = await connected(seed, ROUGH)
        for frame in numbered(30):
            gate.send(frame)
            await end.send(frame)
        await asyncio.sleep(60)
        gate.close("done")
        assert without_doubles(await drain(end)) == numbered(30)
        assert without_doubles(gate.frames) == numbered(30)
        assert gate.closed_times == 1

    run_virtual(main)


@given(seed=st.integers(0, 2**32))
def test_a_cut_loses_the_tail_and_both_ends_hear_of_it(seed: int) -> None:
    """After a cut each end has seen a prefix of what was sent, and then the end."""

    async def main() -> None:
        _, gate, end = await connected(seed, Weather(cut_share=0.1))
        for frame in numbered(100):
            gate.send(frame)
            try:
                await end.send(frame)
            except ConnectionResetError:
                break
            await asyncio.sleep(0.001)
        end.cut()
        received = await drain(end)
        await asyncio.sleep(1)
        assert received == numbered(len(received))
        assert gate.frames == numbered(len(gate.frames))
        assert gate.closed_times == 1

    run_virtual(main)


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_mute_direction_tells_nobody(direction: Direction) -> None:
    """A half-open connection swallows frames and the end one way, and works the other way."""

    async def main() -> None:
        _, gate, end = await connected()
        end.mute(direction)
        await end.send(b"up")
        gate.send(b"down")
        await asyncio.sleep(1)
        await end.close()
        await asyncio.sleep(1)
        heard_up, heard_down = direction == "down", direction == "up"
        assert gate.frames == [b"up"] * heard_up
        assert gate.closed_times == heard_up
        assert await drain(end) == [b"down"] * heard_down

    run_virtual(main)


def test_a_paused_process_goes_on_where_it_stood() -> None:
    """Nothing leaves or reaches a paused process; afterwards everything does, in order."""

    async def main() -> None:
        _, gate, end = await connected()
        end.hold()
        await end.send(b"1")
        gate.send(b"a")
        await asyncio.sleep(20)
        assert gate.frames == []
        end.release()
        await end.send(b"2")
        gate.send(b"b")
        assert [await end.recv(), await end.recv()] == [b"a", b"b"]
        await asyncio.sleep(1)
        assert gate.frames == [b"1", b"2"]

    run_virtual(main)


def test_a_gate_that_hangs_up_on_a_paused_process_resets_it() -> None:
    """What a paused process had not read when the gate closed the connection is lost to it."""

    async def main() -> None:
        _, gate, end = await connected()
        end.hold()
        gate.send(b"never read")
        await asyncio.sleep(10)
        gate.close("silent")
        await asyncio.sleep(1)
        assert gate.closed_times == 1
        end.release()
        assert await drain(end) == []

    run_virtual(main)


def test_a_dead_agent_is_heard_to_the_end() -> None:
    """What a process sent before it died still arrives, then the end; nothing arrives at it."""

    async def main() -> None:
        _, gate, end = await connected()
        await end.send(b"last words")
        end.agent_died()
        gate.send(b"too late")
        await asyncio.sleep(1)
        assert (gate.frames, gate.closed_times) == ([b"last words"], 1)
        assert await drain(end) == []

    run_virtual(main)


def test_a_dead_gate_hears_nothing_and_refuses() -> None:
    """After the gate's death its session is left alone, its agents see the end, and nobody gets through."""

    async def main() -> None:
        network, gate, end = await connected()
        gate.send(b"last words")
        await end.send(b"too late")
        network.gate_died()
        with pytest.raises(ConnectionRefusedError):
            await network.dial("agent")
        assert await drain(end) == [b"last words"]
        assert (gate.frames, gate.closed_times) == ([], 0)
        assert network.open_connections == 0
        network.listen(gate.accept)
        await (await network.dial("agent")).send(b"again")
        await asyncio.sleep(1)
        assert gate.frames == [b"again"]

    run_virtual(main)
