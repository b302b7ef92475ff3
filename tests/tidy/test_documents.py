"""The documentation holds together: links lead somewhere, every page can be found, nothing is left unexplained."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from agentgate.config import load, rows
from agentgate.config.keys import NOT_BUILT
from agentgate.config.mechanisms import MECHANISMS
from agentgate.errors import CODES
from agentgate.model import Span
from agentgate.server.metric_rows import ROWS
from tests.documents import DOCS, FENCE, MADE, anchors_of, files_of, links_of, pages, read, typed
from tests.golden.machines import MACHINES
from tests.tidy.checkout import ROOT, shown, tree_of

INDEX: Final = DOCS / "README.md"
HELP: Final = ROOT / "tests" / "golden" / "help"
POLICIES: Final = DOCS / "reference" / "policies"
PARTS: Final = (
    "Options",
    "Happy path and unhappy path",
    "What (you see|a span says)",
    "Observe mode",
    "DO",
    "DON'T",
    "Where it lives",
)
KINDS: Final = frozenset({"tutorial", "how-to", "reference", "explanation"})

KEY: Final = re.compile(r"`([a-z_]+\.[a-z_.]+)`")
LABEL: Final = re.compile(r"\{(\w+)=\"(\w+)\"\}")
PROOF: Final = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", pages(), ids=shown)
def test_every_link_leads_somewhere(page: Path) -> None:
    """No relative link of any page is dead, and no anchor."""
    dead = [link.target for link in links_of(page) if not link.path.exists()]
    anchored = [link for link in links_of(page) if link.anchor and link.path.suffix == ".md" and link.path.is_file()]
    assert (dead, [link.target for link in anchored if link.anchor not in anchors_of(link.path)]) == ([], [])


def test_every_page_is_in_the_index() -> None:
    """docs/README.md has a line for every page, and every page is of one of the four kinds."""
    listed = {link.path for link in links_of(INDEX)}
    below = [page for page in pages(DOCS) if page != INDEX]
    assert [shown(page) for page in below if page not in listed] == []
    assert {page.relative_to(DOCS).parts[0] for page in below} == KINDS


@pytest.mark.parametrize("start", ["README.md", "README.zh-CN.md"])
def test_every_page_is_reachable_from_the_first_one(start: str) -> None:
    """Whoever begins at README, in either language, gets everywhere by following links."""
    seen: set[Path] = set()
    ahead = [ROOT / start]
    while ahead:
        page = ahead.pop()
        if page not in seen and page.suffix == ".md" and page.is_file():
            seen.add(page)
            ahead += [link.path for link in links_of(page)]
    assert [shown(page) for page in pages(DOCS) if page not in seen] == []


@pytest.mark.parametrize("name", [name for name, mechanism in MECHANISMS.items() if mechanism.built])
def test_every_policy_has_its_page(name: str) -> None:
    """I2: what can be switched is explained: what it does, both paths, what is seen, observe mode, do and don't."""
    text = read(POLICIES / f"{name}.md")
    assert text.startswith(f"# {name}\n")
    assert [title for title in PARTS if not re.search(rf"^## {title}$", text, re.MULTILINE)] == []
    assert f"<!-- made from options mechanisms.{name}" in text


@pytest.mark.parametrize("page", pages(POLICIES), ids=lambda page: str(page.stem))
def test_every_default_has_its_reason(page: Path) -> None:
    """I7: each key in the table of a policy is spoken of beside it."""
    [table, *_] = [found["text"] for found in MADE.finditer(read(page)) if found["what"].startswith("options")]
    prose = MADE.sub("", read(page))
    assert [key for key in KEY.findall(table) if f"`{key}`" not in prose] == []


def test_every_state_and_event_is_explained() -> None:
    """The diagrams of the state machines have no word without a meaning."""
    parts = re.split(r"<!-- made from machine (\w+) -->", read(DOCS / "reference" / "state-machines.md"))
    explained = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert set(explained) == set(MACHINES)
    for name, (table, _) in MACHINES.items():
        words = {word for (state, event), after in table.items() for word in (state, event, after)}
        assert [word for word in sorted(words) if f"`{word}`" not in FENCE.sub("", explained[name])] == [], name


def test_every_field_of_a_span_is_explained() -> None:
    """H1: what is shown of a call can be read by whoever has only the documentation; `last` is never shown."""
    text = read(POLICIES / "tracing.md")
    assert [field for field in Span.__struct_fields__ if field != "last" and f"`{field}`" not in text] == []


@pytest.mark.parametrize("page", pages(DOCS), ids=shown)
def test_a_test_that_is_named_is_there(page: Path) -> None:
    """Where a page says that a test proves something, there is that test."""
    named = PROOF.findall(read(page))
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).is_file()
        or (test and not any(getattr(node, "name", "") == test for node in tree_of(ROOT / file).body))
    ]
    assert missing == []


def test_the_chinese_readme_is_in_step() -> None:
    """README.zh-CN.md shows the same files, commands, links, headings and figures; only words differ."""
    english, chinese = ROOT / "README.md", ROOT / "README.zh-CN.md"
    shape = [skeleton(page) for page in (english, chinese)]
    assert shape[0] == shape[1]


def skeleton(page: Path) -> dict[str, object]:
    """What has to be the same in every language: code without its comments, commands, links, headings, figures."""
    text = read(page)
    blocks = [ast.dump(ast.parse(code)) for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    return {
        "files": list(files_of(page)),
        "code": blocks,
        "commands": [line.command.partition("#")[0].split() for line in typed(page)],
        "links": [link.target for link in links_of(page) if not link.target.startswith("README")],
        "headings": [line.partition(" ")[0] for line in FENCE.sub("", text).splitlines() if line.startswith("#")],
        "points": sum(line.startswith("- ") for line in FENCE.sub("", text).splitlines()),
        "figures": [re.findall(r"\d[\d.]*", line) for line in FENCE.sub("", text).splitlines() if line.startswith("|")],
        "names": sorted(set(re.findall(r"`(\w+)`", FENCE.sub("", text)))),
    }


@pytest.mark.parametrize("page", [*pages(DOCS), ROOT / "README.md"], ids=shown)
def test_what_a_page_names_exists(page: Path, tmp_path: Path) -> None:
    """I4: commands, settings, metrics and codes that a page speaks of are there, and its configuration is one."""
    text = read(page)
    commands = {name.stem.partition("_")[0] for name in HELP.glob("*.txt")}
    assert set(re.findall(r"(?:^\$ |`|bin/)agentgate ([a-z]+)", text, re.MULTILINE)) <= commands
    assert set(re.findall(r"\bagentgate_\w+_total\b", text)) <= {row.full_name for row in ROWS}
    keys = {row.name for row in rows(load())} | set(NOT_BUILT)
    sections = {key.partition(".")[0] for key in keys}
    spoken = {key for key in KEY.findall(text) if key.partition(".")[0] in sections and not key.endswith((".", ".md"))}
    assert spoken <= keys
    assert {code for label, code in LABEL.findall(text) if label == "code"} <= {*CODES, "ok"}
    for name, content in files_of(page).items():
        if name.endswith(".yaml"):
            file = tmp_path / name
            file.write_text(content, encoding="utf-8")
            assert load(file).notes == []
