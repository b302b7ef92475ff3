"""`agentgate drill run` and `list`: rehearsed failures, before and after.

What a drill is and how it runs is in `agentgate.chaos`. Here are the two scenes that it runs on: `simulated`, in this
process and in virtual time, and `live`, with processes as anybody would start them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from agentgate.cli.options import AsJson

drill = typer.Typer(help="Rehearse failures, before and after.", no_args_is_help=True, rich_markup_mode=None)


@drill.callback()
def options() -> None:
    """Rehearse failures, before and after."""


@drill.command()
def run(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A drill of `agentgate drill list`, or a folder with one.")
    ],
    seed: Annotated[int | None, typer.Option(help="When which call is made [the drill's own].")] = None,
    *,
    compare: Annotated[
        bool, typer.Option("--compare", help="Run it without the mechanism first, on the same calls.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="With real processes in real time, instead of simulated time.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rehearse a failure and hold what came of it against its bars.

    With --compare, the column `before` shows what happens without the mechanism that the drill is about; it has bars as
    well, since a failure that does not show proves nothing. Nothing outside of the run is touched: the gate and the
    agents are its own.
    Exit codes: 0 every bar holds, 1 one was missed, 2 there is no such drill.

    Example: agentgate drill run call-cycle --compare
    """
    from agentgate.cli.drill.show import show_run

    raise typer.Exit(show_run(name, seed, compare=compare, live=live, as_json=as_json))


@drill.command(name="list")
def list_drills(*, as_json: AsJson = False) -> None:
    """The drills that there are.

    Example: agentgate drill list
    """
    from agentgate.cli.drill.show import show_list

    show_list(as_json=as_json)
