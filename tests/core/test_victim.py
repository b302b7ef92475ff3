"""Who gives way: each rule against the ones below it."""

from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from msgspec.structs import replace

from agentgate.core.open_wait import UnitFacts
from agentgate.core.victim import choose_victim, victim_key

NOW = 1_000.0
USUAL = UnitFacts(unit="m", agent="a", task_type="t", started_at=900.5, compensations=1, cost=2.0)


# Each row is put in front of the one below by a rule, although every later rule says otherwise.
IN_ORDER = [
    replace(USUAL, unit="z", tier="optional", priority=9, compensations=9, started_at=0.0, cost=9.0),
    replace(USUAL, unit="z", priority=4, compensations=9, started_at=0.0, cost=9.0),
    replace(USUAL, unit="z", compensations=0, started_at=0.0, cost=9.0),
    replace(USUAL, unit="z", started_at=950.5, cost=9.0),
    replace(USUAL, unit="z", started_at=900.2, cost=1.0),
    replace(USUAL, unit="z", started_at=900.6),
    USUAL,
    replace(USUAL, unit="n"),
    replace(USUAL, unit="l", ran_s=500.0, started_at=990.0, cost=0.0),
    replace(USUAL, unit="a", tier="core", priority=0, compensations=0, started_at=999.0, cost=0.0),
    replace(USUAL, unit="a", was_victim=True, tier="optional", priority=0, compensations=0, started_at=999.0, cost=0.0),
]


@pytest.mark.parametrize(("first", "second"), list(pairwise(IN_ORDER)))
def test_the_first_rule_that_tells_them_apart_decides(first: UnitFacts, second: UnitFacts) -> None:
    """D3: tier, priority, compensations, time, cost, age, name, in this order; former victims are spared."""
    assert victim_key(first, NOW) < victim_key(second, NOW)


def test_everybody_who_looks_chooses_the_same() -> None:
    """D3, F68: the order in which members are named changes nothing, and only a member is ever chosen."""
    members = IN_ORDER[5:9]
    for some in permutations(members):
        assert choose_victim(some, NOW) is members[0]


def test_spared_unless_all_were_victims() -> None:
    """D3: who gave way before is asked again only when everybody did."""
    former = [replace(facts, was_victim=True) for facts in IN_ORDER[:3]]
    assert choose_victim([*former, IN_ORDER[9]], NOW) is IN_ORDER[9]
    assert choose_victim(former, NOW) is former[0]
