"""Who gives way: of the members of a knot, the one whose wait is given up first.

Decides the victim. The rules (DESIGN 4.4, D3), the first that tells two members apart:

1. Who gave way before is spared, unless everybody did: otherwise the same work starves.
2. The lowest tier, then the lowest priority.
3. The fewest steps to be undone.
4. The least time spent on the work, earlier runs included, in whole seconds; then the least cost. By finer time nobody
   would ever ask for the cost.
5. The youngest; and by name, so that everybody who looks chooses the same.

Not covered: what the victim is told, and when its wait is cancelled (the timer).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from agentgate.core.open_wait import UnitFacts
from agentgate.model import Tier

TIERS: Final[dict[Tier, int]] = {"optional": 0, "standard": 1, "core": 2}  # who goes first

VictimKey: TypeAlias = tuple[bool, int, int, int, int, float, float, str]


def victim_key(facts: UnitFacts, now: float) -> VictimKey:
    """What members of a knot are compared by; the least gives way. No two units have the same."""
    return (
        facts.was_victim,
        TIERS[facts.tier],
        facts.priority,
        facts.compensations,
        int(facts.ran_s + now - facts.started_at),
        facts.cost,
        -facts.started_at,
        facts.unit,
    )


def choose_victim(members: Iterable[UnitFacts], now: float) -> UnitFacts:
    """The member that gives way."""
    return min(members, key=lambda facts: victim_key(facts, now))
