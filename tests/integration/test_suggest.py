"""Suggestions from the files of a gate that runs, and of one that has stopped."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from agentgate import Gate
from agentgate.adapters.sqlite import SqliteSpanStore, read_spans
from agentgate.app import recorded_spans
from agentgate.config import Settings, StoreOptions
from agentgate.errors import ConfigError, StoreBroke
from agentgate.model import Span
from agentgate.runtime.runner import InlineRunner
from tests.core.span_kit import call
from tests.integration.real_gate import running_agent, running_gate
from tests.integration.realtime import realtime
from tests.integration.test_http import stock_agent

DAY_S = 86_400.0


def newest(store: str, last_s: float = 3600.0, limit: int = 1000) -> list[Span]:
    settings = Settings(store=StoreOptions(url=store))
    return [span for spans in recorded_spans(settings, last_s, limit) for span in spans]


@realtime
async def test_spans_are_read_beside_a_running_gate(tmp_path: Path) -> None:
    """I2: the files are read while the gate has them open and goes on, and after it has stopped as well."""
    store = f"sqlite:{tmp_path}/gate.db"
    async with running_gate(store) as gate, running_agent(gate, stock_agent()), Gate(gate.url, name="shop") as shop:
        for number in range(3):
            await shop.call("stock", "reserve", f"order_{number}", "A-7")
            assert len(await gate.platform.spans.chain(f"order_{number}")) == 2
            assert len(newest(store)) == 2 * (number + 1)
    spans = newest(store)
    assert [span.business_key for span in spans if span.kind == "call"] == ["order_2", "order_1", "order_0"]
    assert len(newest(store, limit=3)) == 3
    assert newest(store, last_s=0.0) == []


@realtime
async def test_reading_goes_back_over_days_and_stops_where_it_is_told(tmp_path: Path) -> None:
    """I2, B14: the newest first, over the files of several days, no more than asked for."""
    now = time.time()
    store = SqliteSpanStore(tmp_path, InlineRunner())
    await store.open()
    for days in (3, 2, 1, 0):
        for number in range(150):
            await store.write([call(number, at=now - days * DAY_S - 200 + number)])
    await store.close()

    def read(since: float, limit: int = 10_000) -> list[float]:
        return [span.started_at for spans in read_spans(tmp_path, since, limit) for span in spans]

    assert len(read(0.0)) == 600
    assert read(0.0) == sorted(read(0.0), reverse=True)
    assert len(read(now - 1.5 * DAY_S)) == 300
    assert len(read(0.0, limit=160)) == 160
    assert read(now + 1) == []


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    """I2: a store in memory, a folder without spans and a damaged file are one sentence each."""
    with pytest.raises(ConfigError, match="memory keeps no spans"):
        newest("memory")
    with pytest.raises(StoreBroke, match="there are no spans"):
        newest(f"sqlite:{tmp_path}/gate.db")
    (tmp_path / "spans-2100-01-01.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(StoreBroke, match="not a database"):
        list(read_spans(tmp_path, 0.0, 10))
    (tmp_path / "spans-2100-01-01.sqlite").unlink()
    base = sqlite3.connect(tmp_path / "spans-2100-01-02.sqlite")
    base.execute("CREATE TABLE blocks (id INTEGER PRIMARY KEY, spans TEXT NOT NULL)")
    base.execute("INSERT INTO blocks (spans) VALUES ('{')")
    base.commit()
    base.close()
    with pytest.raises(StoreBroke, match=r"2100-01-02\.sqlite: "):
        list(read_spans(tmp_path, 0.0, 10))
