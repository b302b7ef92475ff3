"""Runs worlds for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

from agentgate.testing.loop import run_virtual
from agentgate.testing.sim import quieten
from agentgate.testing.world import Length, StoreKind, World

# Short enough for forty of each store within `make test`; `make sim` runs the full length.
SHORT = Length(load_s=3.0, faults_s=12.0)

SEEDS_FILE = Path(__file__).with_name("seeds.txt")


def run_world(seed: int, store: StoreKind, directory: Path, length: Length | None = None) -> World:
    """A world, after it has kept all its promises; raises `Broken` with the whole story if it did not."""
    quieten()
    world = World(seed, store, directory=directory, length=length)
    run_virtual(world.run)
    return world


def regression_seeds() -> list[tuple[int, StoreKind]]:
    """What has failed once: `seed store`, then the reason."""
    known: list[tuple[int, StoreKind]] = []
    for line in SEEDS_FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            seed, store, *_ = line.split()
            known.append((int(seed), "sqlite" if store == "sqlite" else "memory"))
    return known
