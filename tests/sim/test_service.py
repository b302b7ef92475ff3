"""Entering a service means started, leaving it means fully stopped."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

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


class Desk(Service):
    """Does what it is asked for."""

    def ask(self, seconds: float, *, defect: bool = False) -> asyncio.Task[None]:
        return self._task(self._serve(seconds, defect=defect))

    async def _serve(self, seconds: float, *, defect: bool) -> None:
        await asyncio.sleep(seconds)
        if defect:
            raise ValueError("a defect")


def test_a_request_that_fails_ends_nothing_but_itself() -> None:
    """The service goes on for the others, and says what happened."""

    async def main() -> None:
        async with Desk() as desk:
            failed, served = desk.ask(1.0, defect=True), desk.ask(2.0)
            await asyncio.wait([failed, served])
            assert isinstance(failed.exception(), ValueError)
            assert served.exception() is None

    with capture_logs() as logs:
        run_virtual(main)
    assert [entry["event"] for entry in logs] == ["request_failed_inside"]


def test_no_request_outlives_the_service() -> None:
    """Whoever is still at work is cancelled, and has ended when the service is left."""

    async def main() -> None:
        async with Desk() as desk:
            task = desk.ask(100.0)
            await asyncio.sleep(1.0)
        assert task.cancelled()
        assert asyncio.get_running_loop().time() == 1.0

    run_virtual(main)
