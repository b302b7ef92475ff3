"""The faulty store fails on either side of the commit, and dies with its gate."""

from __future__ import annotations

import asyncio
import random

import pytest

from agentgate.adapters.memory import MemoryStore
from agentgate.errors import StoreBroke, StoreConflict
from agentgate.model import Claim, KeyId
from agentgate.testing.faults import StoreMood
from agentgate.testing.faulty_store import FaultyStore, StoreWeather
from agentgate.testing.loop import run_virtual

KEY = KeyId("default", "stock", "shop", "book", "order-1", "run")
CLAIM = Claim(key=KEY, fingerprint="f", agent="stock", unit="u1", instance="i1")


async def opened(mood: StoreMood) -> tuple[MemoryStore, FaultyStore]:
    inner = MemoryStore()
    weather = StoreWeather(random.Random(1))
    store = FaultyStore(inner, weather)
    await store.open()
    await store.begin("gate", "secret", 0.0)
    weather.mood = mood
    return inner, store


async def is_there(inner: MemoryStore) -> bool:
    return (await inner.lookup([KEY], 0.0))[0] is not None


@pytest.mark.parametrize(
    ("mood", "error", "there"),
    [
        (StoreMood(broke_before_share=1), StoreBroke, False),
        (StoreMood(conflict_share=1), StoreConflict, False),
        (StoreMood(broke_after_share=1), StoreBroke, True),
    ],
)
def test_a_failed_claim_is_there_only_when_its_answer_was_lost(
    mood: StoreMood, error: type[Exception], there: bool
) -> None:
    """Broke before and conflict leave nothing behind; broke after leaves the whole effect."""

    async def main() -> None:
        inner, store = await opened(mood)
        with pytest.raises(error):
            await store.claim([CLAIM], "gate", 1, 0.0)
        assert await is_there(inner) is there

    run_virtual(main)


def test_a_slow_store_takes_its_time() -> None:
    """Slowness costs virtual time and nothing else."""

    async def main() -> None:
        inner, store = await opened(StoreMood(slow_share=1, slow_s=3))
        await store.claim([CLAIM], "gate", 1, 0.0)
        assert await is_there(inner)
        assert 0.5 < asyncio.get_running_loop().time() < 3

    run_virtual(main)


@pytest.mark.parametrize(("dies_at", "there"), [(0.5, False), (1.5, True)])
def test_a_dead_process_gets_no_answer(dies_at: float, there: bool) -> None:
    """A kill falls before or after the commit; the process is told neither way, and can do nothing more."""

    async def main() -> None:
        inner, store = await opened(StoreMood(latency_s=(2, 2)))
        asyncio.get_running_loop().call_later(dies_at, store.die)
        with pytest.raises(StoreBroke):
            await store.claim([CLAIM], "gate", 1, 0.0)
        assert await is_there(inner) is there
        with pytest.raises(StoreBroke):
            await store.lookup([KEY], 0.0)

    run_virtual(main)
