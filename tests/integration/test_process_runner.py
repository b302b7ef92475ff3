"""A store in a process of its own: the same answers, and an honest one when the process dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from agentgate.adapters.sqlite import SqliteSpanStore, SqliteStore
from agentgate.errors import StoreBroke
from agentgate.ports.store import SpanStore, Store
from agentgate.runtime.process_runner import ProcessRunner
from agentgate.testing.conformance import SpanStoreSuite, StoreSuite
from agentgate.testing.conformance.opened import opened
from agentgate.testing.conformance.requests import NOW, claim, claimed, key, state_of


class TestSqliteStoreInProcess(StoreSuite):
    """As gates use it."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: SqliteStore(tmp_path / "store.sqlite", ProcessRunner())


class TestSqliteSpanStoreInProcess(SpanStoreSuite):
    """Spans take the same way."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], SpanStore]:
        return lambda: SqliteSpanStore(tmp_path / "spans", ProcessRunner())


def child() -> psutil.Process:
    """The process that this test started."""
    [process] = psutil.Process().children()
    return process


def test_answers_come_in_order_and_cancelled_ones_are_skipped(tmp_path: Path) -> None:
    """Requests that are under way together get each its own answer, also when one of them no longer waits."""

    async def main() -> None:
        async with opened(SqliteStore(tmp_path / "store.sqlite", ProcessRunner())) as store:
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(claimed(store, claim(f"A-{n}", unit=f"u{n}"))) for n in range(20)]
                await asyncio.sleep(0)
                asked[3].cancel()
            assert all(answer.cancelled() if n == 3 else answer.result() == [True] for n, answer in enumerate(asked))
            assert await state_of(store, "A-3") == "running"

    asyncio.run(main())


def test_death_of_the_process_is_told_and_healed(tmp_path: Path) -> None:
    """When the process is killed, who waits is told; the next request finds a new one, and nothing is lost."""

    async def main() -> None:
        async with opened(SqliteStore(tmp_path / "store.sqlite", ProcessRunner())) as store:
            assert await claimed(store, claim()) == [True]
            os.kill(child().pid, signal.SIGSTOP)
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(broke(store)) for _ in range(3)]
                await asyncio.sleep(0.05)
                os.kill(child().pid, signal.SIGKILL)
            assert all("before it had answered" in task.result() for task in waiting)
            async with asyncio.TaskGroup() as group:
                states = [group.create_task(state_of(store)) for _ in range(3)]
            assert [task.result() for task in states] == ["running"] * 3

    async def broke(store: SqliteStore) -> str:
        with pytest.raises(StoreBroke) as raised:
            await store.lookup([key()], NOW)
        return str(raised.value)

    asyncio.run(main())


def test_signals_to_the_group_are_the_parents_business(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group: the process of the store serves on until its parent has hung up."""

    async def main() -> None:
        async with opened(SqliteStore(tmp_path / "store.sqlite", ProcessRunner())) as store:
            process = child()
            for number in (signal.SIGINT, signal.SIGTERM):
                process.send_signal(number)
                assert await claimed(store, claim(str(number), unit=str(number))) == [True]
        assert not process.is_running()

    asyncio.run(main())
