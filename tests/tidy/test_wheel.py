"""What is built contains what runs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tests.tidy.checkout import ROOT, SRC, all_files

EXAMPLE = ROOT / "examples" / "support"


def wheel_names(folder: Path) -> set[str]:
    """Names in the wheel that this checkout builds, without network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_wheel_carries_code_sql_and_the_demo(tmp_path: Path) -> None:
    """Every file of the package (SQL and py.typed too) and of examples/support is in the wheel, so the demo needs no
    checkout; tests and tools are not.
    """
    names = wheel_names(tmp_path)
    package = {f"agentgate/{path.relative_to(SRC).as_posix()}" for path in all_files() if path.is_relative_to(SRC)}
    example = {f"agentgate/{path.relative_to(ROOT).as_posix()}" for path in all_files() if path.is_relative_to(EXAMPLE)}
    code = {name for name in names if name.startswith("agentgate/")}
    rest = {name.partition("/")[0] for name in names - code}
    assert code == package | example
    assert [name for name in rest if not name.endswith(".dist-info")] == []
