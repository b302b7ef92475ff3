"""What the pages show of the code is made from the code, and what their scripts print is what they print."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import structlog

from tests.conftest import Golden
from tests.documents import DOCS, MADE, RUN, files_of, pages, read, write_files
from tests.golden.chain_trees import tree_of
from tests.golden.drill_tables import compared
from tests.golden.figures import measured
from tests.golden.machines import attempts, diagram_of
from tests.golden.option_tables import options_of
from tests.golden.wait_pictures import picture_of

# The first word after "made from" -> who makes it from the other words.
MAKERS: Final[dict[str, Callable[[list[str]], str]]] = {
    "options": options_of,
    "machine": diagram_of,
    "attempts": attempts,
    "performance": measured,
    "chain": tree_of,
    "drill": compared,
    "waits": picture_of,
}


def shown(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


MADE_PAGES: Final = [page for page in pages(DOCS) if MADE.search(read(page))]
RUN_PAGES: Final = [page for page in pages(DOCS) if RUN.search(read(page))]


@pytest.mark.parametrize("made", MADE_PAGES, ids=shown)
def test_what_is_made_from_the_code_is_up_to_date(made: Path, page: Golden) -> None:
    """I7, I2: tables, diagrams and trees of a page say what the code says; `--update-golden` writes them anew."""

    def remade(what: str) -> str:
        maker, *words = what.split()
        return MAKERS[maker](words)

    page(shown(made), MADE.sub(lambda found: found["head"] + remade(found["what"]) + found["tail"], read(made)))


@pytest.mark.parametrize("script", RUN_PAGES, ids=shown)
def test_a_script_prints_what_its_page_says(
    script: Path, page: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I2: every script of the documentation runs as printed, and prints what stands below it."""
    write_files(script, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with forgetting(*files_of(script)):
        text = RUN.sub(lambda found: found["head"] + printed(found["code"], tmp_path) + found["tail"], read(script))
    page(shown(script), text)


def printed(code: str, folder: Path) -> str:
    """What a script prints."""
    file = folder / "script.py"
    file.write_text(code + "\n", encoding="utf-8")
    structlog.reset_defaults()  # as in a fresh process: the local gate keeps its logs to warnings
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        runpy.run_path(str(file), run_name="__main__")
    return out.getvalue()


@contextlib.contextmanager
def forgetting(*files: str) -> Iterator[None]:
    """Modules that a page's script imports are of that page."""
    try:
        yield
    finally:
        for file in files:
            sys.modules.pop(Path(file).stem, None)
