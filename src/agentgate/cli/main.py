"""Puts the commands together, and turns errors into one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from agentgate.cli import exits
from agentgate.cli.agents import agents
from agentgate.cli.breakers import breakers
from agentgate.cli.call import call
from agentgate.cli.calls import calls
from agentgate.cli.chains import chains
from agentgate.cli.config import config
from agentgate.cli.demo import demo
from agentgate.cli.dev import dev
from agentgate.cli.drill import drill
from agentgate.cli.exits import EXIT_CODES_HELP, CommandError
from agentgate.cli.findings import findings
from agentgate.cli.output import print_json, say
from agentgate.cli.run import run as run_agents
from agentgate.cli.serve import serve
from agentgate.cli.tokens import token, use_token_file
from agentgate.cli.waits import waits
from agentgate.errors import AgentGateError, ConfigError, LinkDown, StoreError

EXIT_BY_ERROR: Final[dict[type[Exception], int]] = {
    CommandError: exits.FAILED,
    ConfigError: exits.MISUSED,
    StoreError: exits.MISUSED,  # the file is in use, or cannot be opened
    LinkDown: exits.NO_GATE,
}

app = typer.Typer(
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(serve)
app.command()(dev)
app.command(name="run")(run_agents)
app.command()(call)
app.add_typer(agents, name="agents")
app.command()(chains)
app.command()(waits)
app.command()(breakers)
app.command()(findings)
app.command()(demo)
app.add_typer(drill, name="drill")
app.add_typer(calls, name="calls")
app.add_typer(token, name="token")
app.add_typer(config, name="config")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - Typer's signature
    if wanted:
        from importlib.metadata import version

        print(version("agentgate-control-plane"))
        raise typer.Exit


@app.callback()
def options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Show the gate the token in this file [AGENTGATE_TOKEN]."),
    ] = None,
) -> None:
    """One gate between agents: reliability, a ledger against double effects, and a trace of everything."""
    del show_version  # its callback has acted
    if token_file is not None:
        use_token_file(token_file)


def run() -> int:
    """Run the command line; returns the exit code. A user's mistake never shows a stack trace."""
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else exits.DONE
    except BrokenPipeError:
        # Whoever read the output has gone; there is nobody left to tell, and flushing at exit must not try.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.DONE
    except (CommandError, AgentGateError, ExceptionGroup) as error:
        return _explain(error)
    return exits.DONE


def _explain(error: Exception) -> int:
    """Say an error of ours in one sentence; anything else is a defect and keeps its trace."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    code = next((code for kind, code in EXIT_BY_ERROR.items() if isinstance(error, kind)), None)
    if code is None:
        raise error
    code = error.code if isinstance(error, CommandError) else code
    if "--json" in sys.argv:
        print_json({"error": str(error), "exit_code": code}, in_one_line=True)
    else:
        for sentence in error.flaws if isinstance(error, ConfigError) else [error]:
            say(f"agentgate: {sentence}")
    return code
