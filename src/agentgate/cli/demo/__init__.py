"""`agentgate demo`: a batch of orders through eight real agents, with faults, judged from the outside.

`plan` says what will happen, `crew` starts the processes, `clients` send the orders, `faults` make things go wrong,
`gauges` read the gate, `judge` counts what came of it, `screen` shows it. `run` puts them together. The agents are in
examples/support.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Final

import typer

ORDERS_MAX: Final = 5_000


class Faults(enum.StrEnum):
    """Whether things go wrong."""

    ON = "on"
    OFF = "off"


def demo(
    orders: Annotated[int, typer.Option(min=1, max=ORDERS_MAX, help="How many orders to send.")] = 120,
    faults: Annotated[Faults, typer.Option(help="Whether things go wrong on the way.")] = Faults.ON,
    seed: Annotated[int, typer.Option(help="When which order comes, and which small mishaps happen.")] = 7,
    keep: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Leave logs, store and effects in this new folder.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object.")] = False,
) -> None:
    """Run a batch of orders through a gate and eight agents, and judge what came of it.

    Starts all it needs on this machine, as processes of its own, and stops it again; takes about 45 seconds. It is done
    when at least 99 % of the orders were completed and no effect happened twice; otherwise it has failed.

    Example: agentgate demo --orders 120 --faults on --seed 7
    """
    from agentgate.cli.demo.run import Wish
    from agentgate.cli.demo.show import show

    raise typer.Exit(show(Wish(orders=orders, faults=faults is Faults.ON, seed=seed), keep, as_json=as_json))
