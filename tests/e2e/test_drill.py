"""`agentgate drill` as a user runs it: the list, both columns, real processes, exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agentgate.chaos.drill import drills
from tests.e2e.command import agentgate

KNOWN = drills()


def test_the_list_names_every_drill() -> None:
    """G7: `drill list` says what there is, for people and for machines."""
    listed = json.loads(agentgate("drill", "list", "--json").stdout)["drills"]
    assert [drill["name"] for drill in listed] == list(KNOWN)
    assert all(name in agentgate("drill", "list").stdout for name in KNOWN)


def test_both_columns_and_the_verdict_are_shown() -> None:
    """J: one table of figures, one of bars; what the agents and the gate say about the failure is left out."""
    ran = agentgate("drill", "run", "call-cycle", "--compare")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "BEFORE" in ran.stdout
    assert "the gate named rating_agent.rate" in ran.stdout
    assert ran.stderr == "Every bar holds.\n"


def test_a_missed_bar_fails(tmp_path: Path) -> None:
    """G7: a drill can fail a build: one bar that cannot be held, and the exit code is 1."""
    folder = tmp_path / "own"
    shutil.copytree(KNOWN["call-cycle"].folder, folder)
    file = folder / "drill.toml"
    text = file.read_text(encoding="utf-8").replace("at_most = 3\n", "at_most = 0.001\n")
    file.write_text(text, encoding="utf-8")
    ran = agentgate("drill", "run", str(folder), "--json")
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["holds"], told["drill"]) == (1, False, "own")
    assert [bar["figure"] for bar in told["bars"] if not bar["holds"]] == ["named_within_s"]


def test_an_unknown_drill_is_a_mistake() -> None:
    """Who mistypes is told which drills there are."""
    ran = agentgate("drill", "run", "mutal-wait")
    assert ran.returncode == 2
    assert "call-cycle" in ran.stderr


def test_a_folder_without_a_drill_is_told_what_it_lacks(tmp_path: Path) -> None:
    """Whoever begins a drill of their own is told which file is missing."""
    ran = agentgate("drill", "run", str(tmp_path))
    assert ran.returncode == 2
    assert "has no drill.toml" in ran.stderr


@pytest.mark.parametrize("name", ["mutual-wait"])
def test_a_drill_runs_with_real_processes(name: str, tmp_path: Path) -> None:
    """J4: the same drill and the same bars in real time, with a gate and agents of its own, whatever
    settings whoever runs it has; nothing stays.
    """
    ran = agentgate(
        "drill",
        "run",
        name,
        "--live",
        "--json",
        environ={"TMPDIR": str(tmp_path), "AGENTGATE__MECHANISMS__WAIT_GRAPH": "off"},
    )
    told = json.loads(ran.stdout)
    assert (ran.returncode, told["holds"], told["time"]) == (0, True, "real"), ran.stdout + ran.stderr
    assert list(tmp_path.iterdir()) == []
