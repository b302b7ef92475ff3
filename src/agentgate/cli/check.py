"""`agentgate config check`."""

from __future__ import annotations

import os

import typer

from agentgate.cli.options import AsJson, ConfigFile
from agentgate.cli.output import print_json, say

config = typer.Typer(help="Look at the configuration.", no_args_is_help=True, rich_markup_mode=None)


@config.callback()
def options() -> None:
    """Look at the configuration."""


@config.command()
def check(file: ConfigFile = None, *, as_json: AsJson = False) -> None:
    """Read the configuration as `serve` would, and say what is odd.

    A setting that cannot be used ends with exit code 2 and says where it stands and what would be right.

    Example: agentgate config check --config agentgate.yaml
    """
    from agentgate.config import load, warnings

    loaded = load(file, os.environ)
    notes = [*loaded.notes, *warnings(loaded.settings)]
    if as_json:
        print_json({"ok": True, "given": loaded.origins, "notes": notes})
        return
    for note in notes:
        say(f"note: {note}")
    for name, origin in loaded.origins.items():
        say(f"{name}: from {origin}")
    say(f"the configuration is good: {len(loaded.origins)} keys given, everything else is the default")
