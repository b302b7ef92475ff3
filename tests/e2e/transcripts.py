"""Commands as a page shows them, run in a shell, and held against what the page says they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.documents import Typed
from tests.e2e.command import PATIENCE_S, environment

COLUMNS: Final = "120"  # of the terminal in which the pages were written

# What differs from run to run: addresses, instances, process ids, times.
VARYING: Final = (
    (re.compile(r"http://127\.0\.0\.1:\d+"), "URL"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "TRACE"),
    (re.compile(r"\b[0-9a-f]{16}\b"), "INSTANCE"),
    (re.compile(r'"first_seen_at":[0-9.]+'), '"first_seen_at":N'),
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"\b\d+\.\d\b"), "N"),
    (re.compile(r", queued N"), ""),  # a call may have waited for some microseconds, or not at all
)


def steady(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return text


def shell(command: str, folder: Path, environ: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start a line in a shell that knows our command."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        ["bash", "-c", command],
        env=environment(PATH=path, COLUMNS=COLUMNS, **environ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    """Everything a line printed, once it has ended."""
    try:
        return process.communicate(timeout=PATIENCE_S)[0]
    finally:
        process.kill()


def follow(lines: list[Typed], folder: Path, environ: Mapping[str, str]) -> None:
    """Type these commands one after the other; each has to print what the page says."""
    for line in lines:
        printed = output_of(shell(line.command, folder, environ))
        assert steady(printed) == steady(line.output), line.command
