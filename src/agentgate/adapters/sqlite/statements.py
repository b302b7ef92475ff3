"""SQL lives in named files: every statement has a name, and code names it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

_FOLDER: Final = resources.files(__package__)
_NAMED: Final = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.DOTALL | re.MULTILINE)
_ROW: Final = re.compile(r"\(\?(?:, \?)*\)(?=\)?$)", re.MULTILINE)


def load(file_name: str) -> Mapping[str, str]:
    """The statements of one file by name."""
    text = (_FOLDER / file_name).read_text(encoding="utf-8")
    return {name: statement.strip() for name, statement in _NAMED.findall(text)}


def migrations(folder: str) -> list[str]:
    """The scripts of a schema in order; the n-th one leads to version n."""
    files = sorted((_FOLDER / "migrations" / folder).iterdir(), key=lambda file: file.name)
    return [file.read_text(encoding="utf-8") for file in files if file.name.endswith(".sql")]


def with_rows(statement: str, count: int) -> str:
    """A statement with one row of question marks, for `count` rows."""
    return _ROW.sub(lambda row: ", ".join([row.group()] * count), statement, count=1)
