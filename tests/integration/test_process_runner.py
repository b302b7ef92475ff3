"""A store in a process of its own: the same answers, and an honest one when the process dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from agentgate.adapters.sqlite import SqliteSpanStore, SqliteStore
from agentgate.errors import StoreBroke
from agentgate.ports.store import SpanStore, Store
from agentgate.runtime import hosted
from agentgate.runtime.process_runner import ProcessRunner
from agentgate.runtime.runner import InlineRunner
from agentgate.testing.conformance import SpanStoreSuite, StoreSuite
from agentgate.testing.conformance.opened import opened
from agentgate.testing.conformance.requests import NOW, claim, claimed, key, state_of
from agentgate.testing.conformance.spans import span


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


@pytest.mark.parametrize("unread", [False, True])
def test_a_parent_that_is_gone_is_no_error(unread: bool) -> None:
    """Whether it hung up in good order or was killed with an answer unread, the child ends without a word."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-P", "-m", hosted.__name__, str(theirs.fileno())]
    with theirs:
        child = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with ours:
        if unread:
            ours.sendall(hosted.framed(hosted.Request("nothing", msgspec.Raw(b"[]"))))
            assert select.select([ours], [], [], 20.0)[0]
    said, _ = child.communicate(timeout=20)
    assert (child.returncode, said) == (0, b"")


def test_a_damaged_file_is_broke_here_as_well(tmp_path: Path) -> None:
    """An adapter's finer errors arrive as what they are to everybody else."""

    async def main() -> None:
        path = tmp_path / "store.sqlite"
        path.write_bytes(b"not a database" * 100)
        with pytest.raises(StoreBroke, match="file is not a database"):
            await SqliteStore(path, ProcessRunner()).open()

    asyncio.run(main())


def test_a_process_that_does_not_answer_is_replaced(tmp_path: Path) -> None:
    """Who waits is told within bounds, the next request finds a new process, and closing does not wait for ever."""

    async def main() -> None:
        async with opened(SqliteStore(tmp_path / "store.sqlite", ProcessRunner(patience_s=0.3))) as store:
            assert await claimed(store, claim()) == [True]
            stuck = child()
            stuck.suspend()
            with pytest.raises(StoreBroke, match="before it had answered"):
                await store.lookup([key()], NOW)
            assert await state_of(store) == "running"
            assert not stuck.is_running()
            child().suspend()
        assert psutil.Process().children() == []

    asyncio.run(main())


def test_nobody_else_gets_the_file_while_its_process_is_replaced(tmp_path: Path) -> None:
    """The lock is the gate's, not its child's, and names the process that an operator can stop."""

    async def main() -> None:
        path = tmp_path / "store.sqlite"
        async with opened(SqliteStore(path, ProcessRunner())) as store:
            child().kill()
            with pytest.raises(StoreBroke, match=rf"\(process {os.getpid()}\)"):
                await SqliteStore(path, InlineRunner()).open()
            assert await claimed(store, claim()) == [True]

    asyncio.run(main())


def test_the_file_is_taken_until_the_last_process_of_a_killed_gate_is_gone(tmp_path: Path) -> None:
    """A gate that was killed leaves a child that may still be writing: it holds the lock as well."""

    async def main() -> None:
        path = tmp_path / "store.sqlite"
        store = SqliteStore(path, ProcessRunner())
        async with opened(store):
            held = child()
            held.suspend()
            store._lock.release()  # noqa: SLF001 - what the system does when the gate is killed
            with pytest.raises(StoreBroke, match="in use"):
                await SqliteStore(path, InlineRunner()).open()
            held.kill()
            held.wait()
            async with opened(SqliteStore(path, InlineRunner())):
                pass

    asyncio.run(main())


def test_spans_are_written_again_after_their_process_died(tmp_path: Path) -> None:
    """H1: the span files heal as the ledger does."""

    async def main() -> None:
        async with opened(SqliteSpanStore(tmp_path / "spans", ProcessRunner())) as spans:
            await spans.write([span("s1")])
            child().kill()
            with contextlib.suppress(StoreBroke):  # what was under way is told
                await spans.write([span("s2")])
            await spans.write([span("s3")])
            found = await spans.chain(span("s1").trace_id, 10)
            assert {"s1", "s3"} <= {one.span_id for one in found}

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
