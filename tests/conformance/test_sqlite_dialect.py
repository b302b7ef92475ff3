"""What only SQLite files have: a lock, a mode, migrations, plans, a disk that fills up."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import stat
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgate.adapters.sqlite import SqliteSpanStore, SqliteStore, database, statements
from agentgate.adapters.sqlite.database import Database
from agentgate.adapters.sqlite.file_lock import FileLock
from agentgate.adapters.sqlite.span_files import SpanFiles
from agentgate.adapters.sqlite.span_store import SpanFilesOptions
from agentgate.errors import StoreBadInput, StoreBroke
from agentgate.runtime.runner import InlineRunner
from agentgate.testing.conformance.opened import opened
from agentgate.testing.conformance.requests import NOW, claim, claimed, state_of
from agentgate.testing.conformance.spans import span

MIGRATIONS = ("CREATE TABLE one (n INTEGER);", "CREATE TABLE two (n INTEGER); INSERT INTO one VALUES (1);")


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def new_store(path: Path) -> SqliteStore:
    return SqliteStore(path, InlineRunner())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "store.sqlite"


@pytest.fixture
def file(path: Path) -> Iterator[Database]:
    file = Database(path, MIGRATIONS, synchronous="FULL")
    file.open()
    yield file
    file.close()


def test_a_second_gateway_is_told_who_has_the_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R: one gateway process a file; the second is told which file, who has it, and what to do. Then it is free."""
    monkeypatch.setattr("agentgate.adapters.sqlite.file_lock.WAIT_S", 0.0)

    async def main() -> None:
        async with opened(new_store(path)) as first:
            await claimed(first, claim())
            with pytest.raises(StoreBroke, match=rf"{re.escape(str(path))} is in use .* \(process \d+\): stop that"):
                await new_store(path).open()
            assert await state_of(first) == "running"
        async with opened(new_store(path)) as second:
            assert await state_of(second) == "running"

    run(main())


def test_a_lock_may_come_free_while_waiting(path: Path) -> None:
    """A gateway that restarts at once waits for the last transaction of the one before."""

    async def main() -> None:
        first, second = FileLock(path), FileLock(path)
        await first.take()
        async with asyncio.TaskGroup() as group:
            group.create_task(second.take())
            await asyncio.sleep(0.1)
            first.release()
            first.release()
        second.release()

    run(main())


def test_files_are_for_their_owner_only(path: Path) -> None:
    """The store holds the secret that signs unit tokens: nobody else may read it, also not its log."""

    async def main() -> None:
        async with (
            opened(new_store(path)) as store,
            opened(SqliteSpanStore(path.parent / "spans", InlineRunner())) as spans,
        ):
            await store.begin("gateway", "secret", NOW)
            await spans.write([span("s1")])
            files = [file for file in path.parent.rglob("*") if file.is_file()]
            assert len(files) == 7  # two databases, each with its log and index, and a lock
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            assert {stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent / "spans")} == {0o700}

    run(main())


def test_what_is_answered_is_synced(path: Path) -> None:
    """The ledger's commits wait for the disk, the spans' do not; both write ahead."""

    def pragmas(file: Database) -> list[Any]:
        return [file.row(f"PRAGMA {name}") for name in ("journal_mode", "synchronous")]

    for synchronous, level in (("FULL", 2), ("NORMAL", 1)):
        file = Database(path.with_name(synchronous), MIGRATIONS, synchronous=synchronous)  # type: ignore[arg-type] # from a literal above
        file.open()
        assert pragmas(file) == [("wal",), (level,)]
        file.close()


def test_migrations_run_once_and_in_order(path: Path, file: Database) -> None:
    """An older file gets the missing migrations, each once; a file that is up to date gets none."""
    older = Database(path.with_name("older"), MIGRATIONS[:1], synchronous="FULL")
    older.open()
    older.close()
    for each in (path, path.with_name("older")):
        again = Database(each, MIGRATIONS, synchronous="FULL")
        again.open()
        assert again.row("SELECT count(*) FROM one") == (1,)
        assert again.row("PRAGMA user_version") == (2,)
        again.close()


def test_a_failed_migration_leaves_the_file_as_it_was(path: Path, file: Database) -> None:
    """A migration is all or nothing, and the error names the file."""
    broken = Database(path, (*MIGRATIONS, "CREATE TABLE three (n INTEGER); SELECT nonsense;"), synchronous="FULL")
    with pytest.raises(StoreBroke, match=f"{path.name}.*nonsense"):
        broken.open()
    broken.close()
    assert file.row("PRAGMA user_version") == (2,)
    assert file.row("SELECT count(*) FROM sqlite_schema WHERE name = 'three'") == (0,)


def test_a_newer_file_is_refused(path: Path, file: Database) -> None:
    """An old AgentGate does not touch what a newer one has written."""
    older = Database(path, MIGRATIONS[:1], synchronous="FULL")
    with pytest.raises(StoreBroke, match="newer AgentGate"):
        older.open()
    older.close()


def test_an_old_sqlite_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python with an SQLite that lacks what the statements need is told so at the start."""
    monkeypatch.setattr(database, "SQLITE_MIN", (99, 0))
    with pytest.raises(StoreBroke, match="too old"):
        Database(path, MIGRATIONS, synchronous="FULL").open()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A path below a file cannot be made: the error names it, and the store may be closed all the same."""
    (tmp_path / "file").write_text("not a folder")

    async def main() -> None:
        for store in (
            new_store(tmp_path / "file" / "store.sqlite"),
            SqliteSpanStore(tmp_path / "file" / "spans", InlineRunner()),
        ):
            with pytest.raises(StoreBroke, match=str(tmp_path)):
                await store.open()
            await store.close()

    run(main())


def test_a_file_that_is_no_database_is_named(path: Path, tmp_path: Path) -> None:
    """A damaged file is broke with its name, not an exception of a driver; its lock is let go."""
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 100)
    for _ in range(2):
        with pytest.raises(StoreBroke, match=f"{path.name}: file is not a database"):
            run(new_store(path).open())


def test_a_full_disk_is_broke_and_heals(path: Path) -> None:
    """A batch that does not fit leaves nothing behind; when there is room again the store works on."""

    async def main() -> None:
        async with opened(new_store(path)) as store:
            await claimed(store, claim("before", unit="before"))
            file: Database = store._runner._hosted._database  # type: ignore[attr-defined] # noqa: SLF001 - no other way to shrink the disk
            file.row("PRAGMA max_page_count = 30")
            with pytest.raises(StoreBroke, match="full"):
                await claimed(store, claim("large", unit="large", payload="x" * 200_000))
            assert [await state_of(store, name) for name in ("before", "large")] == ["running", "none"]
            assert await store.find_units(["large"]) == [None]
            file.row("PRAGMA max_page_count = 10000")
            assert await claimed(store, claim("large", unit="large", payload="x" * 200_000)) == [True]

    run(main())


def test_a_file_that_somebody_holds_is_broke(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R: an operator's shell that keeps the file locked longer than we wait makes the store broke, not stuck."""
    monkeypatch.setattr(database, "BUSY_S", 0.01)

    async def main() -> None:
        async with opened(new_store(path)) as store:
            shell = sqlite3.connect(path, isolation_level=None)
            shell.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBroke, match="locked"):
                await claimed(store, claim())
            assert await state_of(store) == "none"
            shell.close()
            assert await claimed(store, claim()) == [True]

    run(main())


def test_what_sqlite_cannot_hold_is_bad_input(file: Database) -> None:
    """Numbers beyond 64 bits and broken text can never succeed; a lost table is our own failure."""
    for value in (2**64, "\ud800"):
        with pytest.raises(StoreBadInput):
            file.write("INSERT INTO one VALUES (?)", (value,))
    with pytest.raises(StoreBroke, match="no such table"):
        file.write("INSERT INTO nowhere VALUES (1)", ())


def test_a_transaction_is_all_or_nothing(file: Database) -> None:
    """Whatever ends a transaction early takes back what it wrote."""

    def write_then(error: BaseException) -> None:
        with file.transaction():
            file.write("INSERT INTO one VALUES (2)", ())
            raise error

    for error in (StoreBadInput("no"), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            write_then(error)
    assert file.row("SELECT count(*) FROM one") == (1,)


PLANS = {
    "read_records": "sqlite_autoindex_ledger",
    "read_open": "ledger_open",
    "read_running": "ledger_open",
    "read_running_due": "ledger_open",
    "list_records": "sqlite_autoindex_ledger",
    "list_failed": "ledger_failed",
    "list_open": "ledger_open",
    "delete_due": "ledger_settled",
    "update_records": "INTEGER PRIMARY KEY",
    "delete_records": "INTEGER PRIMARY KEY",
}


@pytest.mark.parametrize("name", PLANS)
def test_statements_use_their_index(name: str, path: Path) -> None:
    """A store with a day of records is searched, never scanned."""
    file = Database(path, statements.migrations("ledger"), synchronous="FULL")
    file.open()
    statement = statements.load("ledger.sql")[name]
    shell = sqlite3.connect(path)
    parameters = ["[]" if "json_each" in statement else 1] * statement.count("?")
    plan = [row[3] for row in shell.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    shell.close()
    file.close()
    assert any(PLANS[name] in step for step in plan), plan
    assert not any(re.match(r"SCAN ledger(?! USING INDEX ledger_open)", step) for step in plan), plan


def test_every_statement_is_named_and_used() -> None:
    """SQL lives in named blocks; a block that no code names is dead."""
    folder = Path(statements.__file__).parent
    code = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.py"))
    for file in folder.glob("*.sql"):
        named = statements.load(file.name)
        assert named
        assert [name for name in named if f'SQL["{name}"]' not in code] == []


def test_rows_are_repeated() -> None:
    """A statement with one row of question marks serves any number of rows."""
    insert = statements.load("ledger.sql")["insert_records"]
    assert statements.with_rows(insert, 3).count("(?, ?, ?, ?, ?, ?, ?, ?, ?)") == 3
    update = statements.load("ledger.sql")["update_records"]
    assert "VALUES (?, ?, ?, ?), (?, ?, ?, ?))" in statements.with_rows(update, 2)


def test_foreign_files_among_the_spans_are_left_alone(tmp_path: Path) -> None:
    """What is not a day of ours is neither read nor deleted."""
    (tmp_path / "spans-yesterday.sqlite").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    files = SpanFiles(str(tmp_path))
    files.open()
    assert files.read(["00000000"], 10) == []
    assert files.sweep(10**6) == 0
    assert len(list(tmp_path.iterdir())) == 2


def test_spans_are_kept_for_full_days(tmp_path: Path) -> None:
    """A day's file goes when the day is more than `keep_days` before the current one, with its log."""

    async def main() -> None:
        options = SpanFilesOptions(keep_days=2)
        async with opened(SqliteSpanStore(tmp_path, InlineRunner(), options)) as store:
            await store.write([span(f"s{day}", started_at=NOW + day * 86_400) for day in range(5)])
            assert await store.sweep(NOW + 4 * 86_400) == 2
            assert [item.span_id for item in await store.chain("t1", 10)] == ["s2", "s3", "s4"]

    run(main())
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(ValueError, match="keep_days"):
        SpanFilesOptions(keep_days=0)


def test_a_span_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    """Broken text in a summary is refused, not half written."""

    async def main() -> None:
        async with opened(SqliteSpanStore(tmp_path, InlineRunner())) as store:
            with pytest.raises(StoreBadInput):
                await store.write([span("s1"), span("s2", request="\ud800")])
            assert await store.chain("t1", 10) == []

    run(main())


@pytest.mark.parametrize("found_by", ["write", "read"])
def test_a_damaged_file_of_spans_makes_room_for_a_new_one(path: Path, found_by: str) -> None:
    """H1: spans are expendable: a damaged day is put aside once, and writing and reading go on."""

    async def main() -> None:
        folder = path.parent / "spans"
        async with opened(SqliteSpanStore(folder, InlineRunner())) as spans:
            await spans.write([span("s1")])
        [file] = folder.glob("*.sqlite")
        file.write_bytes(b"not a database" * 1_000)
        async with opened(SqliteSpanStore(folder, InlineRunner())) as spans:
            if found_by == "read":
                assert await spans.chain("t1", 10) == []
            await spans.write([span("s2")])
            assert [one.span_id for one in await spans.chain("t1", 10)] == ["s2"]
        assert (folder / "broken-spans").read_bytes().startswith(b"not a database")
        assert len(list(folder.glob("*.sqlite"))) == 1

    run(main())
