"""Writes to a store as fast as it can and says on stdout what the store has acknowledged. Killed by its test."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from agentgate.adapters.sqlite import SqliteStore
from agentgate.model import Change, Changed, Claim, Claimed
from agentgate.runtime.batcher import Batcher
from agentgate.runtime.process_runner import ProcessRunner
from agentgate.testing.conformance.requests import NOW, change, claim

WRITERS = 20


async def main(path: Path, life: str) -> None:
    store = SqliteStore(path, ProcessRunner())
    await store.open()
    epoch = (await store.begin("gateway", "secret", NOW)).epoch
    async with (
        Batcher[Claim, Claimed](lambda claims: store.claim(claims, "gateway", epoch, NOW)) as claims,
        Batcher[Change, Changed](lambda changes: store.change(changes, NOW)) as changes,
        asyncio.TaskGroup() as group,
    ):
        for writer in range(WRITERS):
            group.create_task(write(claims, changes, f"{life}-{writer}"))


async def write(claims: Batcher[Claim, Claimed], changes: Batcher[Change, Changed], name: str) -> None:
    """Claim a key, settle it, and so on; what is printed has been answered."""
    number = 0
    while True:
        key = f"{name}-{number}"
        assert (await claims.submit(claim(key, unit=key))).granted
        print("claimed", key, flush=True)  # noqa: T201 - what the test reads
        assert (await changes.submit(change("done", key, unit=key))).accepted
        print("done", key, flush=True)  # noqa: T201 - what the test reads
        number += 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
