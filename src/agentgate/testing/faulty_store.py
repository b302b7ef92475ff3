"""A store that is slow, fails, and dies with its gate; around any real one.

Each operation takes its time before and after the effect, so that a kill or a failure may fall on either side of the
commit. `broke_after` fails an operation whose effect is there: what an answer lost on its way looks like.

The wrapper belongs to one gateway process. `die` ends it as a crash does: operations under way never answer, later
ones are refused, and what was committed stays committed in the store inside.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from agentgate.errors import StoreBroke, StoreConflict
from agentgate.model import (
    DEFAULT_TENANT,
    Change,
    Changed,
    Claim,
    Claimed,
    KeyId,
    Record,
    RecordState,
    RouteSnapshot,
    Span,
)
from agentgate.ports.store import Lifetime, SpanStore, Store
from agentgate.testing.faults import StoreMood

T = TypeVar("T")


class StoreWeather:
    """The mood of the stores now, and where their chance comes from."""

    def __init__(self, draws: random.Random) -> None:
        self.draws = draws
        self.mood = StoreMood()

    def chance(self, share: float) -> bool:
        """Whether something with this share happens now; what cannot happen draws nothing."""
        return share > 0 and self.draws.random() < share

    async def pause(self) -> None:
        """Half of the time an operation takes."""
        wait_s = self.draws.uniform(*self.mood.latency_s) / 2
        if self.chance(self.mood.slow_share / 2):
            wait_s += self.draws.uniform(0, self.mood.slow_s)
        await asyncio.sleep(wait_s)


class _Faulty:
    """Runs operations with the faults of the day."""

    def __init__(self, weather: StoreWeather) -> None:
        self._weather = weather
        self._dead = False

    def die(self) -> None:
        """The process that uses this store is gone."""
        self._dead = True

    async def _run(self, operation: Callable[[], Awaitable[T]], *, conflicts: bool = False) -> T:
        weather = self._weather
        await self._breathe()
        if weather.chance(weather.mood.broke_before_share):
            raise StoreBroke("simulated: nothing was done")
        if conflicts and weather.chance(weather.mood.conflict_share):
            raise StoreConflict("simulated: somebody else was faster")
        result = await operation()
        await self._breathe()
        if weather.chance(weather.mood.broke_after_share):
            raise StoreBroke("simulated: done, but the answer was lost")
        return result

    async def _breathe(self) -> None:
        if not self._dead:
            await self._weather.pause()
        if self._dead:
            raise StoreBroke("simulated: this process is dead")


class FaultyStore(_Faulty):
    """A `Store` with faults; opening and closing work always."""

    def __init__(self, inner: Store, weather: StoreWeather) -> None:
        super().__init__(weather)
        self._inner = inner

    async def open(self) -> None:
        """As the store inside."""
        await self._inner.open()

    async def close(self) -> None:
        """As the store inside."""
        await self._inner.close()

    async def begin(self, gateway: str, new_secret: str, now: float) -> Lifetime:
        """Without faults: a gateway that cannot begin does not start, and its supervisor tries again."""
        return await self._inner.begin(gateway, new_secret, now)

    async def lookup(self, keys: Sequence[KeyId], now: float) -> list[Record | None]:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.lookup(keys, now))

    async def claim(self, claims: Sequence[Claim], gateway: str, epoch: int, now: float) -> list[Claimed]:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.claim(claims, gateway, epoch, now), conflicts=True)

    async def change(self, changes: Sequence[Change], now: float) -> list[Changed]:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.change(changes, now), conflicts=True)

    async def find_units(self, units: Sequence[str]) -> list[Record | None]:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.find_units(units))

    async def open_records(self, after: KeyId | None, limit: int) -> list[Record]:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.open_records(after, limit))

    async def list_records(
        self, after: KeyId, before: KeyId, state: RecordState | None, now: float, limit: int
    ) -> list[Record]:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.list_records(after, before, state, now, limit))

    async def sweep(self, now: float, limit: int) -> int:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.sweep(now, limit), conflicts=True)

    async def save_routes(self, snapshot: RouteSnapshot) -> None:
        """As the store inside, or a fault."""
        await self._run(lambda: self._inner.save_routes(snapshot), conflicts=True)

    async def load_routes(self) -> RouteSnapshot:
        """As the store inside, or a fault."""
        return await self._run(self._inner.load_routes)


class FaultySpanStore(_Faulty):
    """A `SpanStore` with faults; opening and closing work always."""

    def __init__(self, inner: SpanStore, weather: StoreWeather) -> None:
        super().__init__(weather)
        self._inner = inner

    async def open(self) -> None:
        """As the store inside."""
        await self._inner.open()

    async def close(self) -> None:
        """As the store inside."""
        await self._inner.close()

    async def write(self, spans: Sequence[Span]) -> None:
        """As the store inside, or a fault."""
        await self._run(lambda: self._inner.write(spans))

    async def chain(self, trace_or_key: str, limit: int, tenant: str = DEFAULT_TENANT) -> list[Span]:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.chain(trace_or_key, limit, tenant))

    async def sweep(self, now: float) -> int:
        """As the store inside, or a fault."""
        return await self._run(lambda: self._inner.sweep(now))
