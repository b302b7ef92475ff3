"""The timer of the watchdog: has it look at late units, every now and then (`core.watchdog`).

It is level-triggered: whatever goes wrong in one look, the next one finds what is still due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from agentgate.runtime.service import Service

if TYPE_CHECKING:
    from agentgate.core.watchdog import WatchdogOptions

log = structlog.get_logger(__name__)


class WatchdogTimer(Service):
    """Calls `look` as long as it is entered."""

    def __init__(self, look: Callable[[], None], options: WatchdogOptions) -> None:
        super().__init__()
        self._look = look
        self._options = options

    async def _start(self) -> None:
        self._spawn(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._options.look_s)
            try:
                self._look()
            except Exception:
                log.exception("watchdog_failed")
