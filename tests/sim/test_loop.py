"""Virtual time behaves as real time does, only at once."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading

import pytest

from agentgate.testing.loop import VIRTUAL_S_MAX, NothingCanWake, VirtualLoop, run_virtual

Trace = list[tuple[float, int, int]]


async def sleepers(seed: int) -> Trace:
    """Ten tasks that sleep 2 000 times each, for times drawn from the seed."""
    draws = random.Random(seed)
    trace: Trace = []
    loop = asyncio.get_running_loop()

    async def sleeper(name: int) -> None:
        for turn in range(2_000):
            await asyncio.sleep(draws.expovariate(1 / 5))
            trace.append((loop.time(), name, turn))

    async with asyncio.TaskGroup() as group:
        for name in range(10):
            group.create_task(sleeper(name))
    return trace


def test_hours_pass_at_once_and_in_order() -> None:
    """20 000 sleeps of 5 s on average end in the order of their times, after hours on the loop's clock."""
    trace = run_virtual(sleepers, 1)
    times = [time for time, _, _ in trace]
    assert len(trace) == 20_000
    assert times == sorted(times)
    assert times[-1] > 2 * 3600


def test_equal_seeds_give_equal_traces() -> None:
    """The same program takes the same path; another seed takes another one."""
    assert run_virtual(sleepers, 2) == run_virtual(sleepers, 2)
    assert run_virtual(sleepers, 2) != run_virtual(sleepers, 3)


def test_time_starts_at_zero_and_is_exact() -> None:
    """A sleep takes exactly its time, whatever the callbacks in between cost."""

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = [loop.time()]
        for delay_s in (0.25, 86_400.0, 3 * 86_400.0, 0.0):
            await asyncio.sleep(delay_s)
            seen.append(loop.time())
        return seen

    assert run_virtual(main) == [0.0, 0.25, 86_400.25, 345_600.25, 345_600.25]


def test_timeouts_fire_in_virtual_time() -> None:
    """`asyncio.timeout` and `wait_for` cut what takes longer, and only that."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 4)
        assert await asyncio.wait_for(asyncio.sleep(2, "in time"), 5) == "in time"
        return asyncio.get_running_loop().time()

    assert run_virtual(main) == 9.0


def test_deadlock_names_who_waits_and_where() -> None:
    """When nothing can ever wake the loop, it says which tasks wait, and in which function."""

    async def left(first: asyncio.Lock, second: asyncio.Lock) -> None:
        async with first:
            await asyncio.sleep(1)
            async with second:
                pass

    async def main() -> None:
        one, two = asyncio.Lock(), asyncio.Lock()
        async with asyncio.TaskGroup() as group:
            group.create_task(left(one, two), name="one")
            group.create_task(left(two, one), name="two")

    with pytest.raises(NothingCanWake, match=r"at 1\.0+ s nothing can wake the loop; 3 tasks wait") as raised:
        run_virtual(main)
    assert [task.split(" at ")[0] for task in raised.value.tasks][-2:] == ["one", "two"]
    assert "Lock.acquire" in raised.value.tasks[-1]


def test_lost_wakeup_does_not_hang_the_cleanup() -> None:
    """After `NothingCanWake` the waiting tasks are cancelled like in any other end of a run."""
    ended: list[str] = []

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("main")

    with pytest.raises(NothingCanWake):
        run_virtual(main)
    assert ended == ["main"]


def test_threads_may_call_in() -> None:
    """`call_soon_threadsafe` from a plain thread wakes a loop that has nothing else to do."""

    async def main() -> str:
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=lambda: loop.call_soon_threadsafe(woken.set))
        thread.start()
        await woken.wait()
        thread.join()
        return "woken"

    assert run_virtual(main) == "woken"


def test_clock_waits_for_executor_jobs() -> None:
    """A job in a thread ends before a timer that is set later than the job could need."""

    async def main() -> tuple[str, float]:
        loop = asyncio.get_running_loop()
        gate = threading.Event()
        loop.call_soon(gate.set)
        async with asyncio.timeout(60):
            done = await loop.run_in_executor(None, lambda: "done" if gate.wait(5) else "late")
        return done, loop.time()

    assert run_virtual(main) == ("done", 0.0)


def test_executor_job_may_wait_for_a_timer() -> None:
    """A thread that blocks on something only virtual time brings does not stop the clock for ever."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        gate = threading.Event()
        loop.call_later(30, gate.set)
        assert await loop.run_in_executor(None, gate.wait, 5)
        return loop.time()

    assert run_virtual(main) == 30.0


def test_a_group_is_cancelled_in_the_same_order_every_time() -> None:
    """The order in which a failing group cancels its tasks is a function of the program, not of memory addresses."""

    async def main() -> list[int]:
        ended: list[int] = []

        async def member(number: int) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(number)

        with contextlib.suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for number in range(40):
                    group.create_task(member(number))
                await asyncio.sleep(1)
                raise ValueError
        return ended

    first = run_virtual(main)
    clutter = [object() for _ in range(10_000)]
    assert run_virtual(main) == first
    assert len(clutter) == 10_000


def test_time_beyond_float_precision_is_refused() -> None:
    """A clock that could livelock says so instead."""
    loop = VirtualLoop()
    try:
        with pytest.raises(OverflowError):
            loop.jump(VIRTUAL_S_MAX + 1)
    finally:
        loop.close()
