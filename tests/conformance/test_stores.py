"""Our stores pass the suite of their port."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentgate.adapters.memory import MemorySpanStore, MemoryStore
from agentgate.adapters.sqlite import SqliteSpanStore, SqliteStore
from agentgate.ports.store import SpanStore, Store
from agentgate.runtime.runner import InlineRunner
from agentgate.testing.conformance import SpanStoreSuite, StoreSuite


class TestMemoryStore(StoreSuite):
    """The reference."""

    @pytest.fixture
    def make_store(self) -> Callable[[], Store]:
        store = MemoryStore()
        return lambda: store


class TestSqliteStore(StoreSuite):
    """On disk; in a process of its own: tests/integration/test_process_runner.py."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: SqliteStore(tmp_path / "store.sqlite", InlineRunner())


class TestMemorySpanStore(SpanStoreSuite):
    """The reference."""

    keeps_days = False

    @pytest.fixture
    def make_store(self) -> Callable[[], SpanStore]:
        store = MemorySpanStore()
        return lambda: store


class TestSqliteSpanStore(SpanStoreSuite):
    """One file a day; in a process of its own: tests/integration/test_process_runner.py."""

    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], SpanStore]:
        return lambda: SqliteSpanStore(tmp_path / "spans", InlineRunner())
