"""The faults of the story: what goes wrong while the team works.

Off unless SUPPORT_FAULTS is `on`. Small mishaps are drawn from SUPPORT_SEED, so that the same run meets the same ones.
Larger ones concern a whole agent, every process of it, and are switched from outside, as a file of the agent's name in
the folder SUPPORT_TROUBLE: `echo down > stock_agent` takes the warehouse away until the file goes.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from pathlib import Path

_NO_SWITCHES = Path("no-such-folder")


class Trouble:
    """What goes wrong at one agent."""

    def __init__(self, agent: str) -> None:
        self.on = os.environ.get("SUPPORT_FAULTS") == "on"
        self._agent = agent
        self._seed = os.environ.get("SUPPORT_SEED", "7")
        self._switch = Path(os.environ.get("SUPPORT_TROUBLE", _NO_SWITCHES)) / agent
        self._draws: Counter[str] = Counter()

    def draw(self, what: str) -> float:
        """A float in [0, 1): the same for the same seed, agent, thing, and how often it was asked for."""
        self._draws[what] += 1
        return random.Random(f"{self._seed}/{self._agent}/{what}/{self._draws[what]}").random()

    def strikes(self, what: str, share: float) -> bool:
        """Whether a small mishap happens now; `share` of the times it does."""
        return self.on and self.draw(what) < share

    def is_switched(self, to: str) -> bool:
        """Whether somebody has switched this agent's larger trouble on."""
        try:
            return self.on and self._switch.read_text(encoding="utf-8").strip() == to
        except OSError:
            return False

    def happens_once(self, what: str) -> bool:
        """As `is_switched`, and the switch is off again: of all processes of the agent, one sees it."""
        if not self.is_switched(what):
            return False
        try:
            self._switch.unlink()
        except OSError:
            return False
        return True


async def work(fastest_s: float, slowest_s: float) -> None:
    """Stands for what a real agent would do here: ask a model, a database, a mail server."""
    await asyncio.sleep(random.uniform(fastest_s, slowest_s))


def work_alone(fastest_s: float, slowest_s: float) -> None:
    """The same in a handler that is not async: its thread does nothing else meanwhile."""
    time.sleep(random.uniform(fastest_s, slowest_s))
