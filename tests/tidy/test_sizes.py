"""One idea a file, one step a function: the sizes at which that stops being true."""

from __future__ import annotations

from pathlib import Path

from tests.tidy.checkout import functions_of, python_files, shown

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400


def is_table(path: Path) -> bool:
    """Whether the file is a pure table: data without a single function.

    Tables (and SQL, which is not Python) may be as long as what they list; splitting one would hide a gap in it.
    """
    return next(functions_of(path), None) is None


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_functions_are_short() -> None:
    """A function with its docstring fits on a screen: 70 lines at most."""
    too_long = [
        f"{shown(path, function.lineno)} {function.name}: {lines} lines"
        for path in python_files()
        for function in functions_of(path)
        if (lines := (function.end_lineno or function.lineno) - function.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert not too_long, "\n".join(too_long)


def test_files_are_short() -> None:
    """A file holds one idea: 400 lines at most, pure tables excepted."""
    too_long = [
        f"{shown(path)}: {line_count(path)} lines"
        for path in python_files()
        if line_count(path) > FILE_LINES_MAX and not is_table(path)
    ]
    assert not too_long, "\n".join(too_long)
