"""Runs an asynchronous test on stores that are opened and closed for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol, TypeVar


class Openable(Protocol):
    """What every store is, whatever else it does."""

    async def open(self) -> None:
        """Become usable."""
        ...

    async def close(self) -> None:
        """Let go."""
        ...


S = TypeVar("S", bound=Openable)
Suite = TypeVar("Suite")


@contextlib.asynccontextmanager
async def opened(store: S) -> AsyncIterator[S]:
    """The store, open."""
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def on_store(test: Callable[[Suite, Any], Awaitable[None]]) -> Callable[[Suite, Callable[[], Any]], None]:
    """Make a test of an open store out of an `async def` method; the suite's `make_store` makes the store."""

    def run(self: Suite, make_store: Callable[[], Any]) -> None:
        async def main() -> None:
            async with opened(make_store()) as store:
                await test(self, store)

        asyncio.run(main())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def on_place(
    test: Callable[[Suite, Callable[[], Any]], Awaitable[None]],
) -> Callable[[Suite, Callable[[], Any]], None]:
    """Make a test that opens stores itself, one after the other on the same place."""

    def run(self: Suite, make_store: Callable[[], Any]) -> None:
        async def main() -> None:
            await test(self, make_store)

        asyncio.run(main())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run
