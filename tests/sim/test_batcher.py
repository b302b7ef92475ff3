"""Group commit: order, bounds, failures that stay alone, and waiters that leave."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.errors import StoreBadInput, StoreBroke
from agentgate.runtime.batcher import Batcher, BatcherOptions
from agentgate.runtime.later import Later
from agentgate.testing.loop import run_virtual

Apply = Callable[[Sequence[int]], Awaitable[Sequence[int]]]


class Store:
    """Takes a second for every batch, and fails as told: for bad items, or as a whole."""

    def __init__(self, *, bad: Sequence[int] = (), broke: Sequence[int] = ()) -> None:
        self.bad = bad
        self.broke = broke
        self.batches: list[list[int]] = []

    async def apply(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        await asyncio.sleep(1.0)
        for item in items:
            if item in self.bad:
                raise StoreBadInput(f"bad {item}")
            if item in self.broke:
                raise StoreBroke(f"broke {item}")
        return [item * 10 for item in items]


async def submit_all(batcher: Batcher[int, int], items: Sequence[int]) -> list[int | type[BaseException]]:
    """The answers, or the kinds of errors."""
    futures = [batcher.submit(item) for item in items]
    answers: list[int | type[BaseException]] = []
    for future in futures:
        try:
            answers.append(await future)
        except (StoreBadInput, StoreBroke) as error:
            answers.append(type(error))
    return answers


def test_one_batch_collects_while_another_is_applied() -> None:
    """An idle batcher starts with what came in one turn of the loop; what comes meanwhile is the next batch."""

    async def main() -> None:
        store, loop = Store(), asyncio.get_running_loop()
        async with Batcher(store.apply) as batcher:
            first = [batcher.submit(item) for item in (1, 2)]
            await asyncio.sleep(0.5)
            later = [batcher.submit(item) for item in (3, 4, 5)]
            assert batcher.waiting == 3
            assert [await future for future in first] == [10, 20]
            assert loop.time() == 1.0
            assert [await future for future in later] == [30, 40, 50]
            assert loop.time() == 2.0
        assert store.batches == [[1, 2], [3, 4, 5]]

    run_virtual(main)


def test_batches_are_bounded_and_in_order() -> None:
    """More than one batch holds is taken in order, as many as fit at a time."""

    async def main() -> None:
        store = Store()
        async with Batcher(store.apply, BatcherOptions(items_max=2)) as batcher:
            assert await submit_all(batcher, [1, 2, 3, 4, 5]) == [10, 20, 30, 40, 50]
        assert store.batches == [[1, 2], [3, 4], [5]]

    run_virtual(main)


def test_a_window_waits_for_company() -> None:
    """With a window a batch waits for it before it is applied; one that is full does not wait."""

    async def main() -> None:
        store, loop = Store(), asyncio.get_running_loop()
        async with Batcher(store.apply, BatcherOptions(items_max=2, window_s=0.002)) as batcher:
            first = batcher.submit(1)
            await asyncio.sleep(0.001)
            second = batcher.submit(2)
            assert [await first, await second] == [10, 20]
            assert loop.time() == pytest.approx(1.002)
            assert await submit_all(batcher, [3, 4]) == [30, 40]
            assert loop.time() == pytest.approx(2.002)
        assert store.batches == [[1, 2], [3, 4]]

    run_virtual(main)


@given(st.lists(st.integers(0, 30), max_size=40), st.sets(st.integers(0, 30)), st.integers(1, 7))
def test_bad_items_fail_alone(items: list[int], bad: set[int], items_max: int) -> None:
    """Whatever is bad in a batch, every good item of it is answered, and every bad one is told."""

    async def main() -> None:
        async with Batcher(Store(bad=tuple(bad)).apply, BatcherOptions(items_max=items_max)) as batcher:
            answers = await submit_all(batcher, items)
        assert answers == [StoreBadInput if item in bad else item * 10 for item in items]

    run_virtual(main)


def test_a_broken_store_is_not_asked_for_every_item() -> None:
    """When the store breaks for a single item too, the rest is told without trying: each try may take its time-out."""

    async def main() -> None:
        store = Store(broke=(2,))
        async with Batcher(store.apply) as batcher:
            assert await submit_all(batcher, [1, 2, 3, 4]) == [10, StoreBroke, StoreBroke, StoreBroke]
            assert await submit_all(batcher, [5]) == [50]
        assert store.batches == [[1, 2, 3, 4], [1], [2], [5]]

    run_virtual(main)


def test_any_error_is_an_answer() -> None:
    """A defect in the adapter reaches who asked, and the batcher works on."""

    async def apply(items: Sequence[int]) -> list[int]:
        return [10 // item for item in items]

    async def main() -> None:
        async with Batcher(apply) as batcher:
            futures = [batcher.submit(item) for item in (1, 0, 5)]
            assert (await futures[0], await futures[2]) == (10, 2)
            with pytest.raises(ZeroDivisionError):
                await futures[1]

    run_virtual(main)


def test_a_waiter_that_leaves_loses_nothing() -> None:
    """A cancelled waiter's item is applied with the others, whether its batch had begun or not."""

    async def main() -> None:
        store = Store(bad=(9,))
        async with Batcher(store.apply, BatcherOptions(items_max=3)) as batcher:
            futures = [batcher.submit(item) for item in (1, 2, 9, 4, 5)]
            await asyncio.sleep(0.5)
            for leaving in (futures[0], futures[2], futures[3]):
                leaving.cancel()
            assert (await futures[1], await futures[4]) == (20, 50)
        assert store.batches == [[1, 2, 9], [1], [2], [9], [4, 5]]

    run_virtual(main)


def test_too_many_waiting_are_refused_at_once() -> None:
    """B14: at the bound the request is refused, in the same call; what waits is served."""

    async def main() -> None:
        async with Batcher(Store().apply, BatcherOptions(items_max=2, waiting_max=3)) as batcher:
            futures = [batcher.submit(item) for item in (1, 2, 3)]
            with pytest.raises(StoreBroke, match="3 requests wait"):
                _ = batcher.submit(4)
            await asyncio.sleep(0.5)
            futures += [batcher.submit(5), batcher.submit(6)]
            assert [await future for future in futures] == [10, 20, 30, 50, 60]

    run_virtual(main)


@pytest.mark.parametrize("cancelled", [False, True])
def test_leaving_applies_what_waits(cancelled: bool) -> None:
    """The batcher is left with everything applied, also when its owner was cancelled; outside it takes nothing."""
    store = Store()

    async def owner(futures: list[Later[int]]) -> None:
        batcher = Batcher(store.apply, BatcherOptions(items_max=2))
        with pytest.raises(StoreBroke, match="not in use"):
            _ = batcher.submit(0)
        try:
            async with batcher:
                futures += [batcher.submit(item) for item in (1, 2, 3)]
                if cancelled:
                    await asyncio.sleep(100.0)
        finally:
            with pytest.raises(StoreBroke, match="not in use"):
                _ = batcher.submit(0)

    async def main() -> None:
        futures: list[Later[int]] = []
        async with asyncio.TaskGroup() as group:
            task = group.create_task(owner(futures))
            await asyncio.sleep(0.5)
            if cancelled:
                task.cancel()
        assert [future.result() for future in futures] == [10, 20, 30]
        assert store.batches == [[1, 2], [3]]

    run_virtual(main)


def test_a_second_cancellation_ends_the_wait_and_says_so() -> None:
    """Whoever does not let the batcher finish leaves waiters with an error, never without an answer."""

    async def main() -> None:
        futures: list[Later[int]] = []

        async def owner() -> None:
            async with Batcher(Store().apply, BatcherOptions(items_max=2)) as batcher:
                futures.extend(batcher.submit(item) for item in (1, 2, 3))
                await asyncio.sleep(100.0)

        task = asyncio.get_running_loop().create_task(owner())
        for _ in range(2):
            await asyncio.sleep(0.25)
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert [type(future.exception()) for future in futures] == [StoreBroke] * 3

    run_virtual(main)


@pytest.mark.parametrize("fields", [{"items_max": 0}, {"window_s": -0.1}, {"window_s": 0.1}, {"waiting_max": 0}])
def test_options_are_checked(fields: dict[str, float]) -> None:
    """Options that could not work are refused where they are made."""
    with pytest.raises(ValueError, match=next(iter(fields))):
        BatcherOptions(**fields)  # type: ignore[arg-type] # whole where it matters
