"""`agentgate config check`, `show`, `schema` and `suggest`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from agentgate.cli import exits
from agentgate.cli.exits import CommandError
from agentgate.cli.options import AsJson, ConfigFile
from agentgate.cli.output import print_json, say
from agentgate.cli.suggest import suggest

if TYPE_CHECKING:
    from agentgate.config import Row

config = typer.Typer(help="Look at the configuration.", no_args_is_help=True, rich_markup_mode=None)


@config.callback()
def options() -> None:
    """Look at the configuration."""


@config.command()
def check(file: ConfigFile = None, *, as_json: AsJson = False) -> None:
    """Say all that is wrong or odd in the configuration, as `serve` would read it.

    Settings that cannot be used end with exit code 2; of each is said where it stands and what would be right.

    Example: agentgate config check --config agentgate.yaml
    """
    from agentgate.config import contradictions, examine

    loaded, flaws, unusable = examine(file, os.environ)
    odd = [one for one in contradictions(loaded) if unusable.isdisjoint(row.name for row in one.keys)]
    if as_json:
        found = [{"keys": [_given(row) for row in one.keys], "why": one.why, "remedy": one.remedy} for one in odd]
        good = {"ok": not flaws, "given": loaded.origins, "notes": loaded.notes, "contradictions": found}
        print_json({**good, "errors": flaws})
    else:
        for note in (*loaded.notes, *(one.text for one in odd)):
            say(f"note: {note}")
        for flaw in flaws:
            say(f"error: {flaw}")
    if flaws:
        raise typer.Exit(exits.MISUSED)
    if not as_json:
        say(f"the configuration is good: {len(loaded.origins)} keys given, everything else is the default")


@config.command()
def show(
    section: Annotated[str, typer.Argument(metavar="SECTION", help="A section or a key; without it, everything.")] = "",
    file: ConfigFile = None,
    *,
    given: Annotated[bool, typer.Option("--given", help="Only what is not left to its default.")] = False,
    as_json: AsJson = False,
) -> None:
    """Every key with its value, where that comes from, its default, what it means, and what bad values do.

    Example: agentgate config show circuit_breaker --config agentgate.yaml
    """
    from agentgate.config import load, rows

    wanted = [row for row in rows(load(file, os.environ)) if not section or f"{row.name}.".startswith(f"{section}.")]
    if not wanted:
        raise CommandError(f"there is no section or key {section!r}; `agentgate config show` lists all", exits.MISUSED)
    shown = [row for row in wanted if row.is_given or not given]
    if as_json:
        print_json({"keys": shown})
        return
    for row in shown:
        origin = f"{row.origin}; default {row.default}" if row.is_given else row.origin
        print(f"{row.name} = {row.value}  ({origin})")
        for line in (row.meaning, *row.consequences):
            print(f"    {line}")


def _given(row: Row) -> dict[str, object]:
    return {"name": row.name, "value": row.value, "origin": row.origin}


@config.command()
def schema() -> None:
    """The configuration file as a JSON Schema, for editors.

    Example: agentgate config schema > agentgate.schema.json
    """
    from agentgate.config import schema as whole

    print_json(whole())


config.command()(suggest)
