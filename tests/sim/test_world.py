"""The simulated world itself: it is repeatable, and it is not idle."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from agentgate.testing.connection import Weather
from agentgate.testing.faults import FaultMix, StoreMood, draw_mix
from agentgate.testing.loop import run_virtual
from agentgate.testing.sim import main, quieten
from agentgate.testing.world import Length, World
from tests.sim.worlds import SHORT, run_world

DIGEST_OF_A_RUN = """
import hashlib, sys
from pathlib import Path
from tests.sim.worlds import SHORT, run_world
print(hashlib.sha256("\\n".join(run_world(int(sys.argv[1]), "memory", Path(), SHORT).trace()).encode()).hexdigest())
"""

ROUGH = FaultMix(
    weather=Weather(latency_s=(0.0005, 0.01), slow_share=0.01, double_share=0.05, cut_share=0.003, mute_share=0.001),
    store=StoreMood(slow_share=0.02, broke_before_share=0.01, broke_after_share=0.01, conflict_share=0.01),
    agent_killed_every_s=6.0,
    agent_paused_every_s=8.0,
    pause_s=4.0,
    gate_killed_every_s=10.0,
    handler_fault_share=0.3,
)


def digest(seed: int, hash_seed: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", DIGEST_OF_A_RUN, str(seed)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        text=True,
    )
    return ran.stdout.strip()


def test_the_same_seed_takes_the_same_path(tmp_path: Path) -> None:
    """A run is a function of its seed: in the same process, and in others whose sets are in another order."""
    first = run_world(7, "memory", tmp_path, SHORT).trace()
    assert run_world(7, "memory", tmp_path, SHORT).trace() == first
    expected = hashlib.sha256("\n".join(first).encode()).hexdigest()
    assert [digest(7, "1"), digest(7, "2")] == [expected, expected]
    assert run_world(8, "memory", tmp_path, SHORT).trace() != first


def test_both_stores_behave_alike(tmp_path: Path) -> None:
    """The store takes no part in chance: on SQLite a run takes the very path that it takes in memory."""
    assert run_world(7, "sqlite", tmp_path, SHORT).trace() == run_world(7, "memory", tmp_path, SHORT).trace()


def test_a_rough_run_meets_everything() -> None:
    """A run with every kind of fault is not idle: units are lost, rejoin, answer late; keys replay, join, get lost."""
    quieten()
    world = World(1, mix=ROUGH, length=Length(load_s=5.0, faults_s=120.0, pause_s=0.15))
    run_virtual(world.run)
    met = (
        "attempts", "checks", "joins", "late_answers", "lives", "lost_units", "openings",
        "rejoined_units", "replays", "retries", "retries_saved", "zombies",
    )  # fmt: skip
    assert [name for name in met if world.totals[name] < 2] == []
    codes = {asked.code for asked in world.witness.asked}
    assert {
        "", "breaker_open", "deadline_exceeded", "handler_error", "in_progress", "key_conflict", "loop",
        "malformed_output", "outcome_unknown", "overloaded", "rejected", "store_down",
    } <= codes  # fmt: skip


def test_mixes_have_a_character() -> None:
    """The seed draws first which kinds of fault a run has: no two of a hundred are alike, and some are calm."""
    mixes = {draw_mix(random.Random(seed)).describe() for seed in range(100)}
    assert len(mixes) == 100
    assert min(len(mix.split(", ")) for mix in mixes) <= 3


def test_the_command_runs_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m agentgate.testing.sim` says what it did, and its exit code says whether all promises were kept."""
    assert main(["--seed", "3", "--store", "memory"]) == 0
    assert "1 worlds in" in capsys.readouterr().out
