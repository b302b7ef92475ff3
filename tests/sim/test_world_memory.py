"""Whole platforms in virtual time keep their promises, on the store in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.worlds import SHORT, regression_seeds, run_world


@pytest.mark.parametrize("seed", range(1, 41))
def test_promises_are_kept(seed: int, tmp_path: Path) -> None:
    """A10: whatever the seed does to it, invariants 1, 2, 3, 7, 8, 9 and 10 hold and everything comes to rest."""
    run_world(seed, "memory", tmp_path, SHORT)


@pytest.mark.parametrize("seed", [seed for seed, store in regression_seeds() if store == "memory"])
def test_what_failed_once_holds(seed: int, tmp_path: Path) -> None:
    """Every seed that ever broke a promise is run again, in full."""
    run_world(seed, "memory", tmp_path)
