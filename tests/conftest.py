"""What every level shares: levels from folders, golden texts, and how hypothesis searches."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

TESTS = Path(__file__).parent
GOLDEN = TESTS / "golden"
DOCS = TESTS.parent / "docs"

# A folder is a level. These levels may wait for the real world or for many seeds, so a test of theirs gets more time
# than the general limit in pyproject.toml.
TIMEOUT_S_OF_LEVEL = {"integration": 120, "sim": 300, "e2e": 300}

# A red run must be red again, so the suite always tries the same examples. `--hypothesis-profile=search` looks for
# new ones and takes longer.
hypothesis.settings.register_profile("repeat", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2_000, print_blob=True)
hypothesis.settings.load_profile("repeat")

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the texts in tests/golden, to be reviewed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        level = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        if level not in TIMEOUT_S_OF_LEVEL:
            continue
        item.add_marker(level)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S_OF_LEVEL[level]))


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A test that sets up logging does so for itself alone."""
    logger = logging.getLogger("agentgate")
    level, settings = logger.level, structlog.get_config()
    yield
    logger.setLevel(level)
    structlog.configure(**settings)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare a text with `tests/golden/<name>`; with `--update-golden`, write it there."""
    return comparing(GOLDEN, request.config)


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Golden:
    """The same for a page of the documentation that is made from the code: `docs/<name>`."""
    return comparing(DOCS, request.config)


def comparing(folder: Path, config: pytest.Config) -> Golden:
    update = bool(config.getoption("--update-golden"))

    def compare(name: str, text: str) -> None:
        path = folder / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        kept = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != kept:
            shown = f"{folder.name}/{name}"
            pytest.fail(
                f"{difference(kept, text, shown)}\nIf this is meant: pytest --update-golden, and review the diff."
            )

    return compare


def difference(kept: str, text: str, name: str) -> str:
    lines = difflib.unified_diff(kept.splitlines(), text.splitlines(), name, "now", lineterm="")
    return "\n".join(lines) or "only line endings differ"
