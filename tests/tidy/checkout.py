"""The files of the checkout, as the tidy tests see them."""

from __future__ import annotations

import ast
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "agentgate"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def all_files() -> tuple[Path, ...]:
    """Every file that is tracked or about to be: what git knows, and what it would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return tuple(sorted(path for path in paths if path.is_file()))


def python_files(*folders: str) -> list[Path]:
    """Python files below these top folders (`src`, `tests`, ...), or all of them."""
    return [
        path
        for path in all_files()
        if path.suffix == ".py" and (not folders or path.relative_to(ROOT).parts[0] in folders)
    ]


def shown(path: Path, line: int | None = None) -> str:
    """A path as one would click it."""
    name = path.relative_to(ROOT).as_posix()
    return name if line is None else f"{name}:{line}"


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """The parsed file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions_of(path: Path) -> Iterator[Function]:
    """Every function and method of the file, nested ones as well."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, Function):
            yield node
