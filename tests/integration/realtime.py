"""Runs a test that is a coroutine in an event loop of its own, in real time."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


def realtime(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Decorate `async def test_...`; fixtures and parameters work as ever."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
