"""kill -9: everything that the store has acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from agentgate.adapters.sqlite import SqliteStore
from agentgate.runtime.runner import InlineRunner
from agentgate.testing.conformance.opened import opened
from agentgate.testing.conformance.requests import NOW, key

ROOT = Path(__file__).parents[2]
LIVES = 4
SEED = 3
STATES = {"claimed": {"running", "done"}, "done": {"done"}}


def acknowledged(path: Path, life: int, kill_after_s: float) -> Iterator[list[str]]:
    """The words of a writer until it is killed, that long after its first one."""
    command = [sys.executable, "-m", "tests.integration.ledger_writer", str(path), str(life)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        assert first
        yield first.split()
        deadline = time.monotonic() + kill_after_s
        for line in writer.stdout:
            if line.endswith("\n"):  # the last one may be cut
                yield line.split()
            if time.monotonic() > deadline:
                writer.kill()


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    """C2: a claim that was granted is on disk, and so is an answer that was accepted, whenever the process is killed;
    the next process finds the file free and whole, and a higher epoch.
    """
    draws = random.Random(SEED)
    path = tmp_path / "store.sqlite"
    said: dict[str, str] = {}

    async def check(life: int) -> None:
        async with opened(SqliteStore(path, InlineRunner())) as store:
            records = await store.lookup([key(name) for name in said], NOW)
            for (name, word), record in zip(said.items(), records, strict=True):
                assert record is not None, name
                assert record.state in STATES[word], name
                assert (record.units == ()) == (record.state == "done")
            assert (await store.begin("gateway", "other", NOW)).epoch == 2 * life + 2

    for life in range(LIVES):
        words = acknowledged(path, life, draws.uniform(0.0, 0.5))
        said |= {name: word for word, name in words}
        asyncio.run(check(life))
    assert len(said) > 100
