"""The schema of each SQLite file, as reviewed: what all migrations together lead to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from agentgate.adapters.sqlite import statements
from agentgate.adapters.sqlite.database import Database

SCHEMAS = ("ledger", "spans")


def dump(connection: sqlite3.Connection) -> str:
    """Every object with its own text, in the order of its name; SQLite's and FTS5's internal tables are left out."""
    rows = connection.execute(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB 'block_names_*' ORDER BY name"
    )
    return "".join(f"{sql};\n\n" for (sql,) in rows)


def migrated(path: Path, schema: str) -> str:
    database = Database(path, statements.migrations(schema), synchronous="NORMAL")
    database.open()
    database.close()
    connection = sqlite3.connect(path)
    text = dump(connection)
    connection.close()
    return text


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_is_as_reviewed(schema: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """A change of a schema is seen and meant."""
    golden(f"sqlite_{schema}.sql", migrated(tmp_path / "file.sqlite", schema))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schema_from_scratch_is_schema_by_migrations(schema: str, tmp_path: Path) -> None:
    """The reviewed text, run on an empty file, gives what the migrations give."""
    connection = sqlite3.connect(":memory:")
    connection.executescript((Path(__file__).parent / f"sqlite_{schema}.sql").read_text(encoding="utf-8"))
    assert dump(connection) == migrated(tmp_path / "file.sqlite", schema)
    connection.close()
