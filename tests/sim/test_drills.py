"""Every drill in simulated time, before and after, as `agentgate drill run NAME --compare` runs it."""

from __future__ import annotations

import pytest

from agentgate.chaos.bars import judge
from agentgate.chaos.drill import drills
from agentgate.cli.drill.show import run_simulated

KNOWN = drills()


@pytest.mark.parametrize("name", KNOWN)
def test_every_drill_holds_its_bars(name: str) -> None:
    """J4, D3: without the mechanism the failure is there, with the defaults the bars hold."""
    found = KNOWN[name]
    runs = {
        "before": run_simulated(found, "before", found.drill.seed).figures,
        "after": run_simulated(found, "after", found.drill.seed).figures,
    }
    missed = [one for one in judge(found.drill.all_bars(), runs) if not one.holds]
    assert missed == []
