"""A test is a claim, and a core file opens with its theory of operation."""

from __future__ import annotations

import ast

from tests.tidy.checkout import SRC, functions_of, python_files, shown, tree_of

CLAIM_WORDS_MIN = 4
THEORY_LINES_MIN = 5


def test_every_test_states_its_claim() -> None:
    """Every test function has a docstring that is a sentence, not a label."""
    silent = [
        f"{shown(path, function.lineno)} {function.name}"
        for path in python_files("tests")
        for function in functions_of(path)
        if function.name.startswith("test_")
        if len((ast.get_docstring(function) or "").split()) < CLAIM_WORDS_MIN
    ]
    assert not silent, "\n".join(silent)


def test_core_files_open_with_their_theory() -> None:
    """Every core file says at its head what it decides, by which rules, and what it leaves to others."""
    short = [
        shown(path)
        for path in python_files("src")
        if path.is_relative_to(SRC / "core") and path.name != "__init__.py"
        if len((ast.get_docstring(tree_of(path)) or "").splitlines()) < THEORY_LINES_MIN
    ]
    assert not short, "\n".join(short)
