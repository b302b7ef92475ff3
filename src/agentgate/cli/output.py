"""What commands print: tables and colour for people on a terminal, JSON for machines.

Names and details come from agents, so they are shown as text whatever they contain: no markup is read in them, and
what could move the cursor or change colours is shown as an escape.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_IN_A_PIPE: Final = 1_000  # nothing is cut for whoever reads lines

STATE_STYLES: Final = {
    "connected": "green",
    "done": "green",
    "closed": "green",
    "half_open": "yellow",
    "away": "yellow",
    "draining": "yellow",
    "leaving": "yellow",
    "expected": "yellow",
    "refused": "yellow",
    "open": "red",
    "failed": "red",
    "unknown": "red",
}


def console(*, to_stderr: bool = False) -> Console:
    """Standard output, or standard error; colours only on a terminal, as usual with NO_COLOR."""
    from rich.console import Console

    is_terminal = (sys.stderr if to_stderr else sys.stdout).isatty()
    return Console(highlight=False, stderr=to_stderr, width=None if is_terminal else WIDTH_IN_A_PIPE)


def print_json(value: object, *, in_one_line: bool = False) -> None:
    """One JSON document and a newline."""
    indent = -1 if in_one_line else 2
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=indent).decode() + "\n")
    sys.stdout.flush()


def say(line: str) -> None:
    """A line for people about what is going on, beside the result: standard error."""
    sys.stderr.write(shown(line) + "\n")
    sys.stderr.flush()


def shown(value: object) -> str:
    """Text in which nothing but text is left."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(value))


def cell(value: object) -> Text:
    """A table cell; states have their colour."""
    from rich.text import Text

    text = "" if value is None else shown(value)
    return Text(text, style=STATE_STYLES.get(text, ""))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, to_stderr: bool = False) -> None:
    """A plain table; numbers to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[place], int | float | None) for row in rows)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    console(to_stderr=to_stderr).print(table)
