"""Time and chance of a real process; a simulation hands in its own."""

from __future__ import annotations

import random
import secrets
import time


def monotonic() -> float:
    """Seconds of the clock that asyncio's own event loops use as well."""
    return time.monotonic()


def draw() -> float:
    """A float in [0, 1)."""
    return random.random()


def new_instance() -> str:
    """The name of this process towards the gate: 16 hexadecimal digits, new at every start."""
    return secrets.token_hex(8)
