"""Who is on stage in a run, and how the gate is set: drawn from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agentgate.config import Settings
from agentgate.core.budget import BudgetOptions
from agentgate.core.chain import ChainOptions
from agentgate.core.instances import SlotOptions
from agentgate.core.rate import RateOptions

NAMES = ("order", "stock", "pay")
SMALL_SHARE = 0.2  # of the runs, for each limit
RESTS_SHARE = 0.6  # of the agents: their handlers are async
TIGHT_SHARE = 0.25  # of the runs: every slot counts, and some orders close circles of waits on purpose


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """One agent: how many instances, how much each takes at a time, and whether its handlers hold threads."""

    instances: int
    concurrency: int
    rests: bool = True


# One slot each, held while its unit waits; of the last agent two, one of which may get lost.
TIGHT = {
    name: Role(instances=number, concurrency=1, rests=False) for name, number in zip(NAMES, (1, 1, 2), strict=True)
}


def draw_cast(draws: random.Random) -> dict[str, Role]:
    """Three agents, from a single narrow instance to three wide ones."""
    if draws.random() < TIGHT_SHARE:
        return TIGHT
    return {
        name: Role(
            instances=draws.randint(1, 3),
            concurrency=draws.choice((1, 2, 4, 8)),
            rests=draws.random() < RESTS_SHARE,
        )
        for name in NAMES
    }


def draw_settings(draws: random.Random) -> Settings:
    """Defaults, but each limit is small in some runs, so that its end is reached."""

    def seldom() -> bool:
        return draws.random() < SMALL_SHARE

    return Settings(
        budget=BudgetOptions(tokens_max=3.0) if seldom() else BudgetOptions(),
        rate=RateOptions(rate_per_s=3.0, burst=3, parked_max=5) if seldom() else RateOptions(),
        slots=SlotOptions(queue_max=5, open_factor=2) if seldom() else SlotOptions(),
        chain=ChainOptions(depth_max=1, fan_out_max=2) if seldom() else ChainOptions(),
    )
