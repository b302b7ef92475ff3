"""What goes wrong in a run: the seed draws the mix first, then each fault.

Two steps, so that every run has a character of its own: for each kind a coin decides whether it occurs in this run
at all, and a second draw how often. Runs in which everything goes wrong a little find other defects than runs in
which one thing goes wrong all the time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from agentgate.testing.connection import Weather

KIND_SHARE = 0.5  # of the runs in which a kind of fault occurs at all


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreMood:
    """How the store behaves. Shares are chances per operation.

    `broke_after` is the nasty one: the commit happened, only its answer was lost.
    """

    latency_s: tuple[float, float] = (0.0, 0.003)  # a group commit on a local disk
    slow_share: float = 0.0
    slow_s: float = 1.0
    broke_before_share: float = 0.0
    broke_after_share: float = 0.0
    conflict_share: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class FaultMix:
    """Which kinds of fault a run has, and how often. Times between events are means; 0 means never."""

    weather: Weather = field(default_factory=Weather)
    store: StoreMood = field(default_factory=StoreMood)
    agent_killed_every_s: float = 0.0
    agent_paused_every_s: float = 0.0
    pause_s: float = 0.0
    gate_killed_every_s: float = 0.0
    handler_fault_share: float = 0.0

    def describe(self) -> str:
        """The kinds that are on, in a line."""
        store = [f"store {part}" for part in _named(self.store)]
        return ", ".join([*_named(self.weather), *store, *_named(self)]) or "no faults"


CALM_MIX = FaultMix()


def draw_mix(draws: random.Random) -> FaultMix:
    """The character of a run."""

    def share(least: float, most: float) -> float:
        """Zero in half of the runs, else a share from the bounds, evenly in its order of magnitude."""
        on, where = draws.random() < KIND_SHARE, draws.random()
        return least * (most / least) ** where if on else 0.0

    return FaultMix(
        weather=Weather(
            latency_s=(0.0005, draws.choice((0.002, 0.01, 0.05))),
            slow_share=share(0.001, 0.05),
            slow_s=draws.choice((0.1, 1.0, 2.0)),
            double_share=share(0.002, 0.2),
            cut_share=share(0.0005, 0.02),
            mute_share=share(0.0002, 0.005),
        ),
        store=StoreMood(
            slow_share=share(0.005, 0.2),
            slow_s=draws.choice((0.05, 0.5, 3.0)),
            broke_before_share=share(0.005, 0.1),
            broke_after_share=share(0.005, 0.1),
            conflict_share=share(0.005, 0.1),
        ),
        agent_killed_every_s=share(4.0, 40.0),
        agent_paused_every_s=share(4.0, 40.0),
        pause_s=draws.choice((0.5, 4.0, 15.0)),
        gate_killed_every_s=share(10.0, 60.0),
        handler_fault_share=share(0.05, 0.6),
    )


def _named(part: Weather | StoreMood | FaultMix) -> list[str]:
    """`cut 0.010` for every share and time between events that is not zero."""
    numbers = {name: getattr(part, name) for name in part.__dataclass_fields__}
    return [
        f"{name.removesuffix('_share')} {value:.3g}"
        for name, value in numbers.items()
        if name.endswith(("_share", "_every_s")) and value
    ]
