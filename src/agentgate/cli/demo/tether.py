"""Runs an agentgate command that ends when the process that started it does.

    python -m agentgate.cli.demo.tether serve ...

Standard input is the tether: a pipe that nobody writes to. When its other end closes, by whatever death, the command
gets the same signal as from `kill`; and a second one, at which it ends at once, if it has not stopped by then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Final

GRACE_S: Final = 10.0
LAST_S: Final = 2.0


def hold(tether: int) -> None:
    """Watch the tether from a thread of its own."""
    threading.Thread(target=_watch, args=(tether,), name="tether", daemon=True).start()


def _watch(tether: int) -> None:
    while os.read(tether, 1024):
        pass
    for wait_s in (GRACE_S, LAST_S):
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(wait_s)
    os._exit(1)


if __name__ == "__main__":
    from agentgate.cli.main import run

    hold(sys.stdin.fileno())
    sys.exit(run())
