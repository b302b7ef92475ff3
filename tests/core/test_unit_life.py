"""The life of a unit, as a table."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from agentgate.core.table import IllegalTransition, step
from agentgate.core.unit_life import HOLDS_SLOT, LIVE, TABLE, UnitEvent, UnitState

STATES = get_args(UnitState)
EVENTS = get_args(UnitEvent)


@pytest.mark.parametrize(("state", "event"), [pair for pair in product(STATES, EVENTS) if pair not in TABLE])
def test_an_unknown_pair_raises(state: UnitState, event: UnitEvent) -> None:
    """A unit that has ended ends once, and nothing happens to it afterwards."""
    with pytest.raises(IllegalTransition):
        step(TABLE, state, event)


def test_every_live_state_can_end() -> None:
    """D7: no state of a unit is a trap."""
    assert all(TABLE[state, "end"] == "ended" for state in LIVE)
    assert set(STATES) - LIVE == {"ended"}


def test_a_zombie_holds_no_slot() -> None:
    """B11: a unit that does not stop when told to gives its slot up all the same."""
    assert TABLE["told", "overstay"] not in HOLDS_SLOT
    assert {"running", "told"} == HOLDS_SLOT
