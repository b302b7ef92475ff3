"""Merges single requests into the set statements of a store: group commit.

While one batch is applied, the next one collects. Nothing waits artificially: an idle batcher starts with whatever
was submitted in the same turn of the loop, and the batches grow by themselves when the store is the bottleneck.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from agentgate.errors import StoreBroke
from agentgate.runtime.later import Later
from agentgate.runtime.service import Service

Item = TypeVar("Item")
Answer = TypeVar("Answer")

ITEMS_MAX: Final = 256  # beyond it a batch gains nothing and the first of it waits longer (DESIGN 6)
WINDOW_S_MAX: Final = 0.002  # what one batch may wait for company; more is felt by every call (DESIGN 6)
WAITING_MAX: Final = 16_384  # 64 full batches: some seconds of a slow disk, then the entrance has to say so


@dataclass(frozen=True, kw_only=True)
class BatcherOptions:
    """How large a batch may be, how long it waits for company, and how many requests may wait."""

    items_max: int = ITEMS_MAX
    window_s: float = 0.0  # 0: an idle store is used at once
    waiting_max: int = WAITING_MAX

    def __post_init__(self) -> None:
        if self.items_max < 1:
            raise ValueError(f"items_max must be at least 1, not {self.items_max}")
        if not 0.0 <= self.window_s <= WINDOW_S_MAX:
            raise ValueError(f"window_s must be between 0 and {WINDOW_S_MAX}, not {self.window_s}")
        if self.waiting_max < 1:
            raise ValueError(f"waiting_max must be at least 1, not {self.waiting_max}")


class _Waiter(NamedTuple, Generic[Item, Answer]):
    item: Item
    answer: Later[Answer]

    def settle(self, answer: Answer) -> None:
        """Hand over the answer."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: BaseException) -> None:
        """Hand over an error."""
        if not self.answer.done():
            self.answer.set_exception(error)


class Batcher(Service, Generic[Item, Answer]):
    """Applies what is submitted in batches, in order, one at a time. Leaving it applies what is still waiting.

    A failed batch is re-run item by item, once, so that one bad request fails alone; when the store is broken for a
    single item too, the rest of the batch is told without trying. A waiter that is cancelled changes nothing for the
    others, and its own item is applied all the same: nobody knows whether it already was.
    """

    def __init__(
        self,
        apply: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        options: BatcherOptions | None = None,
    ) -> None:
        super().__init__()
        self._apply = apply
        self._options = options or BatcherOptions()
        self._waiting: deque[_Waiter[Item, Answer]] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._open = False

    def submit(self, item: Item) -> Later[Answer]:
        """Queue one request; raises `StoreBroke` when too many wait already, or when the batcher is not open."""
        if not self._open:
            raise StoreBroke("the store is not in use: the gateway is starting or has stopped")
        if len(self._waiting) >= self._options.waiting_max:
            raise StoreBroke(f"the store does not keep up: {len(self._waiting)} requests wait for it")
        answer: Later[Answer] = Later()
        self._waiting.append(_Waiter(item, answer))
        if self._idle.is_set():
            self._idle.clear()
            self._spawn(self._drain())
        return answer

    @property
    def waiting(self) -> int:
        """How many requests wait for the next batch."""
        return len(self._waiting)

    async def _start(self) -> None:
        self._open = True

    async def _stop(self) -> None:
        """Take nothing new, and apply what waits, also when whoever entered was cancelled."""
        self._open = False
        await self._idle.wait()

    async def _drain(self) -> None:
        batch: list[_Waiter[Item, Answer]] = []
        try:
            while self._waiting:
                if self._options.window_s and len(self._waiting) < self._options.items_max:
                    await asyncio.sleep(self._options.window_s)
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._options.items_max))]
                await self._apply_batch(batch)
        finally:
            self._idle.set()
            for waiter in (*batch, *self._waiting):  # only when this task was cancelled is anybody left
                waiter.fail(StoreBroke("the gateway stopped before the store had answered"))
            self._waiting.clear()

    async def _apply_batch(self, batch: list[_Waiter[Item, Answer]]) -> None:
        try:
            answers = await self._apply([waiter.item for waiter in batch])
        except Exception as error:  # noqa: BLE001 - whatever one item did to the batch, the others must be heard
            if len(batch) > 1:
                await self._apply_singly(batch)
            else:
                batch[0].fail(error)
            return
        for waiter, answer in zip(batch, answers, strict=True):
            waiter.settle(answer)

    async def _apply_singly(self, batch: list[_Waiter[Item, Answer]]) -> None:
        broke: StoreBroke | None = None
        for waiter in batch:
            if broke is not None:
                waiter.fail(broke)
                continue
            try:
                [answer] = await self._apply([waiter.item])
            except Exception as error:  # noqa: BLE001 - it is the answer to this item
                broke = error if isinstance(error, StoreBroke) else None
                waiter.fail(error)
            else:
                waiter.settle(answer)
