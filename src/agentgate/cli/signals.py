"""Ctrl-C and SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from agentgate.cli import exits


def stop_signal(before_exit: Callable[[], None] = lambda: None) -> asyncio.Event:
    """Set at the first SIGTERM or Ctrl-C; the second one ends the process at once, after `before_exit`."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            before_exit()
            os._exit(exits.INTERRUPTED)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    return stop
