"""The stores give the same answers and hold the same things, whatever is asked of them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any, Protocol

import pytest

from agentgate.adapters.dump import Dump
from agentgate.adapters.memory import MemoryStore
from agentgate.adapters.sqlite import SqliteStore
from agentgate.errors import StoreError
from agentgate.model import Changed, Claimed, Record
from agentgate.ports.store import Store
from agentgate.runtime.runner import InlineRunner
from tests.differential.stream import WEIGHTS, Oracle, Step, Stream

QUIET_STEPS = 300  # the stream ends when so many in a row have shown nothing new
STEPS_MAX = 3_000


class DumpingStore(Store, Protocol):
    """A store that shows everything it holds."""

    async def dump(self) -> Dump: ...


async def ask(store: Store, step: Step) -> Any:
    """The answer, or the kind of error. A start closes and opens the store, as a restart does."""
    if step.kind == "begin":
        await store.close()
        await store.open()
    try:
        return await getattr(store, step.kind)(*step.arguments)
    except StoreError as error:
        return type(error)


def gist(answer: Any) -> Any:
    """What kind of answer it was."""
    if isinstance(answer, Claimed):
        return answer.granted, answer.record.state, len(answer.record.units)
    if isinstance(answer, Changed):
        return answer.accepted, None if answer.record is None else answer.record.state
    if isinstance(answer, Record):
        return answer.state
    if isinstance(answer, int):
        return min(answer, 2)
    return answer if isinstance(answer, type) else type(answer)


def signatures(step: Step, answer: Any, held: Dump) -> set[Any]:
    """What this step has shown: for each of its requests what was asked, in which state of its key, and the answer."""
    if not isinstance(answer, list) or step.kind in ("open_records", "list_records"):
        return {(step.kind, gist(answer))}
    states = {record.key: record.state for record in held.records}
    return {
        (step.kind, getattr(request, "event", None), states.get(getattr(request, "key", request)), gist(item))
        for request, item in zip(step.arguments[0], answer, strict=True)
    }


@pytest.mark.parametrize("seed", range(3))
def test_sqlite_is_the_same_as_memory(seed: int, tmp_path: Path) -> None:
    """Random requests, restarts and clock changes: equal answers and equal contents after every step, until no kind of
    answer is new any more; by then every kind of request has succeeded.
    """

    async def main() -> Counter[str]:
        oracle: DumpingStore = MemoryStore()
        other: DumpingStore = SqliteStore(tmp_path / "store.sqlite", InlineRunner())
        await oracle.open()
        await other.open()
        look = Oracle(await oracle.dump())
        seen: set[Any] = set()
        succeeded: Counter[str] = Counter()
        quiet = 0
        for number, step in enumerate(Stream(random.Random(seed)).steps(look)):
            expected, answer = await ask(oracle, step), await ask(other, step)
            assert answer == expected, (seed, number, step)
            before, look.held = look.held, await oracle.dump()
            assert await other.dump() == look.held, (seed, number, step)
            new = signatures(step, expected, before) - seen
            quiet = 0 if new else quiet + 1
            seen |= new
            succeeded[step.kind] += not isinstance(expected, type)
            if (quiet >= QUIET_STEPS and min(succeeded[kind] for kind in WEIGHTS) > 0) or number >= STEPS_MAX:
                break
        await other.close()
        return succeeded

    succeeded = asyncio.run(main())
    assert min(succeeded[kind] for kind in WEIGHTS) > 0, succeeded
