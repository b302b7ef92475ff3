"""The measured figures, from the page that says how they were measured: other pages must not have older ones."""

from __future__ import annotations

import re
from typing import Final

from tests.documents import DOCS, read

TABLE: Final = re.compile(r"^## Where it stands$.*?^(?P<table>\|.*?)^(?!\|)", re.DOTALL | re.MULTILINE)


def measured(_: list[str]) -> str:
    """The first two columns of the table under "Where it stands" in docs/explanation/performance.md."""
    found = TABLE.search(read(DOCS / "explanation" / "performance.md"))
    assert found, "performance.md has no table under `## Where it stands`"
    return "".join("|".join(line.split("|")[:3]) + "|\n" for line in found["table"].splitlines())
