"""A value that comes later: it wakes who waits, at once, and is nobody's loose end."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.runtime.later import Later, first
from agentgate.testing.loop import run_virtual


def test_whoever_waits_gets_the_value_also_after_the_end() -> None:
    """Any number may wait, and one that leaves takes nothing from the others."""

    async def wait(later: Later[int]) -> int:
        return await later

    async def main() -> None:
        later: Later[int] = Later()
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(wait(later)) for _ in range(3)]
            await asyncio.sleep(1.0)
            waiting[1].cancel()
            await asyncio.sleep(1.0)
            assert not later.done()
            later.set_result(7)
        assert [task.cancelled() or task.result() for task in waiting] == [7, True, 7]
        assert await later == 7

    run_virtual(main)


def test_it_ends_once() -> None:
    """A second end is a defect; a late `cancel` is none."""
    later: Later[int] = Later()
    with pytest.raises(asyncio.InvalidStateError):
        later.result()
    with pytest.raises(asyncio.InvalidStateError):
        later.exception()
    later.set_result(1)
    later.cancel()
    assert (later.result(), later.exception(), later.cancelled()) == (1, None, False)
    with pytest.raises(asyncio.InvalidStateError):
        later.set_result(2)


def test_an_error_comes_out_for_everybody_who_asks() -> None:
    """By `result`, by `await`, and not at all when nobody asks."""

    async def main() -> None:
        later: Later[int] = Later()
        later.set_exception(OSError("disk"))
        for _ in range(2):
            with pytest.raises(OSError, match="disk"):
                await later
        gone: Later[int] = Later()
        gone.cancel()
        assert gone.cancelled()

    run_virtual(main)


def test_callbacks_run_at_the_end_and_cannot_hurt_each_other() -> None:
    """In order, at once, also for those that come too late; what one raises is logged."""
    later: Later[int] = Later()
    heard: list[int] = []

    def fail(_later: Later[int]) -> None:
        raise ValueError("a defect")

    later.then(fail)
    later.then(lambda ended: heard.append(ended.result()))
    later.set_result(3)
    later.then(lambda ended: heard.append(ended.result() + 1))
    assert heard == [3, 4]


def test_the_first_of_several_wins_or_the_time_passes() -> None:
    """Waiting ends with the first end, at the time, or by cancellation, and leaves nothing behind."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        one: Later[int] = Later()
        two: Later[int] = Later()
        assert await first([one, two], loop.time() + 5.0) is None
        assert loop.time() == 5.0
        loop.call_later(1.0, two.set_result, 2)
        assert await first([one, two], loop.time() + 5.0) is two
        assert loop.time() == 6.0
        assert await first([one, two], loop.time()) is two
        waiting = loop.create_task(first([one], 100.0))
        await asyncio.sleep(1.0)
        waiting.cancel()
        await asyncio.wait([waiting])
        one.set_result(1)
        assert one.result() == 1

    run_virtual(main)
