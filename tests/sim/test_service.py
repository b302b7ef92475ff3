"""Entering a service means started, leaving it means fully stopped."""

from __future__ import annotations

import asyncio

import pytest

from agentgate.runtime.service import Service
from agentgate.testing.loop import run_virtual


class Ticker(Service):
    """Counts seconds; fails at the start or at work when told to."""

    def __init__(self, *, fail_start: bool = False, fail_at: int = 1_000) -> None:
        super().__init__()
        self.fail_start = fail_start
        self.fail_at = fail_at
        self.ticks = 0
        self.ended = 0

    async def _start(self) -> None:
        self._spawn(self._tick())
        await asyncio.sleep(0)
        if self.fail_start:
            raise OSError("cannot start")

    async def _tick(self) -> None:
        try:
            while True:
                await asyncio.sleep(1.0)
                self.ticks += 1
                if self.ticks == self.fail_at:
                    raise ValueError("a defect")
        finally:
            self.ended += 1


def test_tasks_live_as_long_as_the_service() -> None:
    """A task runs while the service is entered and has ended when it is left."""

    async def main() -> None:
        async with Ticker() as ticker:
            await asyncio.sleep(2.5)
            assert (ticker.ticks, ticker.ended) == (2, 0)
        assert ticker.ended == 1

    run_virtual(main)


def test_a_failed_start_leaves_nothing_behind() -> None:
    """When `_start` raises, what it had started is ended and the error comes out."""
    ticker = Ticker(fail_start=True)

    async def main() -> None:
        async with ticker:
            pytest.fail("it was not started")

    with pytest.raises(OSError, match="cannot start"):
        run_virtual(main)
    assert ticker.ended == 1


def test_a_failed_task_ends_the_owner() -> None:
    """A task that raises is a defect: whoever entered the service is ended with it, not left with half of it."""
    reached = []

    async def main() -> None:
        async with Ticker(fail_at=2):
            await asyncio.sleep(100.0)
            reached.append("the end")

    with pytest.raises(ExceptionGroup) as raised:
        run_virtual(main)
    assert isinstance(raised.value.exceptions[0], ValueError)
    assert reached == []


def test_an_error_inside_is_not_hidden() -> None:
    """What is raised inside comes out as it is, after the service has stopped."""
    ticker = Ticker()

    async def main() -> None:
        async with ticker:
            raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        run_virtual(main)
    assert ticker.ended == 1
