"""Few dependencies, each declared, pinned and explained."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.checkout import ROOT

PINS = {name: ROOT / "requirements" / f"{name}.txt" for name in ("gate", "dev")}
PIN = re.compile(r"[a-z0-9-]+==[\w.]+( ; .+)?")
OWN_NAME = "agentgate-control-plane"


def pins_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def declared() -> dict[str, Requirement]:
    """What pyproject.toml asks for, base and extras together."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    requirements = [Requirement(line) for line in listed]
    return {canonicalize_name(item.name): item for item in requirements if item.name != OWN_NAME}


def test_requirement_files_hold_pins_only() -> None:
    """Every line is `name==version`: no URLs, no options, sorted, nothing twice."""
    for path in PINS.values():
        pins = pins_of(path)
        assert [pin for pin in pins if not PIN.fullmatch(pin)] == [], path.name
        names = [pin.partition("==")[0] for pin in pins]
        assert names == sorted(set(names)), path.name


def test_every_dependency_is_pinned_within_its_range() -> None:
    """What pyproject.toml asks for is pinned, at a version that its range allows."""
    pinned = {pin.name: pin for path in PINS.values() for pin in map(Requirement, pins_of(path))}
    for name, wanted in declared().items():
        assert name in pinned, name
        assert wanted.specifier.contains(str(pinned[name].specifier).removeprefix("==")), name


def test_base_install_is_two_packages() -> None:
    """An agent needs msgspec and websockets, nothing else."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(Requirement(line).name for line in project["dependencies"]) == ["msgspec", "websockets"]


def test_every_dependency_is_explained() -> None:
    """docs/explanation/dependencies.md has a row for everything that pyproject.toml asks for."""
    page = (ROOT / "docs" / "explanation" / "dependencies.md").read_text(encoding="utf-8").lower()
    assert [name for name in declared() if f"| {name} |" not in page] == []
