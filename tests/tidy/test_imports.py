"""Imports point down, and the SDK stays light."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.tidy.checkout import ROOT

# What the base install depends on.
# msgspec looks for `typing_extensions` by itself, and takes it where it is installed.
LIGHT = frozenset({"agentgate", "msgspec", "websockets", "typing_extensions"})

# What the SDK may pull in of our own code; everything else is the gate's.
LIGHT_OWN = frozenset({"core", "errors", "model", "sdk"})

# Parts of the standard library that take long to load and that an agent does not need.
HEAVY = frozenset({"multiprocessing", "sqlite3", "tkinter", "unittest", "xml"})

LOADED_BY_IMPORT = """
import json, sys
before = set(sys.modules)
import agentgate
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def loaded_by_import() -> list[str]:
    """Names of the modules that `import agentgate` loads in a fresh process."""
    ran = subprocess.run([sys.executable, "-I", "-c", LOADED_BY_IMPORT], capture_output=True, check=True, text=True)
    names: list[str] = json.loads(ran.stdout)
    return names


def test_import_contracts_hold() -> None:
    """Layers import only downward, the core is pure, the SDK uses two core modules (DESIGN 3)."""
    command = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run([command, "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_import_needs_only_the_base_install() -> None:
    """`import agentgate` works with msgspec and websockets alone, and leaves the gate's code and slow modules out."""
    loaded = loaded_by_import()
    tops = {name.partition(".")[0] for name in loaded}
    foreign = {name for name in tops if name not in sys.stdlib_module_names} - LIGHT
    own = {name.split(".")[1] for name in loaded if name.startswith("agentgate.")} - LIGHT_OWN
    assert (foreign, own, tops & HEAVY) == (set(), set(), set())
