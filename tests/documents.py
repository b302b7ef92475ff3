"""The documentation as the tests see it: its pages, their links, what in them is made from the code, what is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.tidy.checkout import ROOT, all_files

DOCS: Final = ROOT / "docs"

# A part of a page that a test makes: between the two comments, nothing is written by hand.
MADE: Final = re.compile(
    r"(?P<head><!-- made from (?P<what>[^>]+?) -->\n)(?P<text>.*?)(?P<tail><!-- end -->\n)", re.DOTALL
)
# A script that is run, and after it what it prints.
RUN: Final = re.compile(
    r"(?P<head><!-- run -->\n```python\n(?P<code>(?:(?!```).)*?)\n```\n(?:(?!```).)*?```text\n)"
    r"(?P<text>.*?)(?P<tail>```\n)",
    re.DOTALL,
)
FILE: Final = re.compile(r"<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<text>.*?)\n```\n", re.DOTALL)
FENCE: Final = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$", re.DOTALL | re.MULTILINE)
CODE: Final = re.compile(r"(`+).+?\1", re.DOTALL)
LINK: Final = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)")
HEADING: Final = re.compile(r"^#{1,6} +(?P<title>.+?) *#*$", re.MULTILINE)
CONSOLE: Final = re.compile(r"```console\n(?P<text>.*?)```", re.DOTALL)


def pages(below: Path = ROOT) -> list[Path]:
    """Every page of the checkout, or those below a folder."""
    return [path for path in all_files() if path.suffix == ".md" and path.is_relative_to(below)]


def read(page: Path) -> str:
    """Its text."""
    return page.read_text(encoding="utf-8")


def files_of(page: Path) -> dict[str, str]:
    """The files that a page shows in full, by name."""
    return {found["name"]: found["text"] + "\n" for found in FILE.finditer(read(page))}


def write_files(page: Path, folder: Path) -> list[str]:
    """Put the files of a page into a folder; their names."""
    files = files_of(page)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return list(files)


class Typed(NamedTuple):
    """A command as a page shows it after a `$`, and what it prints there."""

    command: str
    output: str


def typed(page: Path) -> Iterator[Typed]:
    """The commands of a page, in order; a line that ends with a backslash goes on in the next."""
    for block in CONSOLE.finditer(read(page)):
        for part in re.split(r"^\$ ", block["text"].replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield Typed(command, output)


class Link(NamedTuple):
    """A link to a place of this checkout."""

    page: Path
    target: str

    @property
    def path(self) -> Path:
        """The file or folder it leads to."""
        name = self.target.partition("#")[0]
        return (self.page.parent / name).resolve() if name else self.page

    @property
    def anchor(self) -> str:
        """The heading it leads to, if it names one."""
        return self.target.partition("#")[2]


def links_of(page: Path) -> list[Link]:
    """The links of a page that do not leave the checkout."""
    text = CODE.sub("", FENCE.sub("", read(page)))
    targets = (found["target"] for found in LINK.finditer(text))
    return [Link(page, target) for target in targets if not re.match(r"[a-z]+:", target)]


def anchors_of(page: Path) -> set[str]:
    """The anchors that a page offers: its headings, as GitHub names them."""
    anchors: set[str] = set()
    for found in HEADING.finditer(FENCE.sub("", read(page))):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found["title"])
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        number = 1
        name = anchor
        while name in anchors:
            name, number = f"{anchor}-{number}", number + 1
        anchors.add(name)
    return anchors
