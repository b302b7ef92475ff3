"""Effects of agents under test: lines in a file that nobody but the agent's own handlers writes, outside the platform.

A line is on disk before `append` returns, so an effect that a handler answered for is there, whoever is killed when.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Final

PLACE: Final = "EFFECTS_FILE"  # the environment variable that tells agents where it is


def append(key: str, unit: str) -> None:
    """The effect: one line, written whole."""
    file = os.open(os.environ[PLACE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{key}\t{unit}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)


def units_of(path: Path) -> dict[str, list[str]]:
    """The units that took effect, by key."""
    found: dict[str, list[str]] = defaultdict(list)
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            key, unit = line.split("\t")
            found[key].append(unit)
    return found
