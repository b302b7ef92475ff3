"""Who is on stage in a run, and how the gate is set: drawn from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agentgate.config import Settings
from agentgate.core.budget import BudgetOptions

NAMES = ("order", "stock", "pay")


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """One agent: how many instances, and how much each takes at a time."""

    instances: int
    concurrency: int


def draw_cast(draws: random.Random) -> dict[str, Role]:
    """Three agents, from a single narrow instance to three wide ones."""
    return {name: Role(instances=draws.randint(1, 3), concurrency=draws.choice((1, 2, 4, 8))) for name in NAMES}


def draw_settings(draws: random.Random) -> Settings:
    """Defaults, but in some runs a small retry budget, so that its end is reached."""
    return Settings(budget=BudgetOptions(tokens_max=draws.choice((20.0, 20.0, 3.0))))
