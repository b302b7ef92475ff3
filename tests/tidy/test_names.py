"""Names and words that must not appear, and what is unbounded or machine-bound by its very text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.checkout import ROOT, all_files, python_files, shown, tree_of

# A file is named after what it is about; these are names for what nobody found a place for.
BANNED_NAMES = frozenset({"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"})

# Levels that meet the real world; everywhere else time is virtual or an argument.
MAY_SLEEP = frozenset({"integration", "e2e"})

BOUNDED_QUEUES = frozenset({"Queue", "LifoQueue", "PriorityQueue"})
UNBOUNDED_QUEUES = frozenset({"SimpleQueue"})

# Written as patterns or in pieces, so that this file does not contain what it forbids.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:home|root|work|Users)/")
REGISTRY_HOST = re.compile(
    "|".join(re.escape(".".join(parts)) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org")))
)


def calls_of(path: Path) -> Iterator[tuple[int, str, ast.Call]]:
    """Line, dotted name and node of every call in the file."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func), node


def is_unbounded_queue(name: str, call: ast.Call) -> bool:
    last = name.rpartition(".")[2]
    if last in UNBOUNDED_QUEUES:
        return True
    if last not in BOUNDED_QUEUES:
        return False
    sizes = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "maxsize")]
    return not sizes or (isinstance(sizes[0], ast.Constant) and sizes[0].value == 0)


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{shown(path, number)} {line.strip()[:100]}"
        for path in all_files()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_is_named_after_nothing() -> None:
    """No file or folder is called util, common, helpers and the like."""
    named = [
        shown(path) for path in all_files() if BANNED_NAMES & {Path(part).stem for part in path.relative_to(ROOT).parts}
    ]
    assert not named, "\n".join(named)


def test_queues_are_bounded() -> None:
    """Every queue names its limit."""
    unbounded = [
        f"{shown(path, line)} {name}"
        for path in python_files("src", "examples", "bench")
        for line, name, call in calls_of(path)
        if is_unbounded_queue(name, call)
    ]
    assert not unbounded, "\n".join(unbounded)


def test_only_the_real_levels_sleep() -> None:
    """Outside tests/integration and tests/e2e no test blocks on real time."""
    asleep = [
        shown(path, line)
        for path in python_files("tests")
        if path.relative_to(ROOT).parts[1] not in MAY_SLEEP
        for line, name, _ in calls_of(path)
        if name == "time.sleep"
    ]
    assert not asleep, "\n".join(asleep)


def test_nothing_is_bound_to_one_machine() -> None:
    """No tracked file contains an absolute path of somebody's machine."""
    found = lines_matching(MACHINE_PATH)
    assert not found, "\n".join(found)


def test_no_registry_is_named() -> None:
    """Where packages come from is the business of the installer's configuration, not of a tracked file."""
    found = lines_matching(REGISTRY_HOST)
    assert not found, "\n".join(found)


def test_schemas_are_never_fetched() -> None:
    """A schema comes from an agent; building its validator opens no URL and no file, whatever it refers to."""
    online = [
        shown(path, line)
        for path in python_files("src", "examples", "bench")
        for line, name, call in calls_of(path)
        if re.search(r"\b(validator_for|Draft\w+Validator)$", name)
        if not any(keyword.arg == "offline" and ast.unparse(keyword.value) == "True" for keyword in call.keywords)
    ]
    assert not online, "\n".join(online)
