"""The settings of a mechanism as a table, from the rows that `config show` prints."""

from __future__ import annotations

from agentgate.config import Row, load, rows

HEAD = "| key | default | what it sets | too high | too low |\n|---|---|---|---|---|\n"


def options_of(names: list[str]) -> str:
    """The table of these keys; a name that ends with a dot stands for all keys of a section."""
    known = rows(load())
    lines = [HEAD]
    for name in names:
        found = [row for row in known if row.name == name or (name.endswith(".") and row.name.startswith(name))]
        assert found, f"there is no key {name}"
        lines += map(_line, found)
    return "".join(lines)


def _line(row: Row) -> str:
    if row.name.startswith("mechanisms."):
        off = f"off: {row.when_off}" if row.when_off else ""
        return f"| `{row.name}` | `{row.default}` | {row.meaning}; takes {row.takes} | | {off} |\n"
    return f"| `{row.name}` | `{row.default}` | {row.meaning} | {row.too_high} | {row.too_low} |\n"
