"""`agentgate breakers`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentgate.cli import gate_api
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import print_json, print_table, say

COLUMNS = ("AGENT", "TASK TYPE", "STATE", "FOR", "OK", "FAULTS", "RATIO", "OPENED", "TRIES AGAIN")


def breakers(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Only this agent's.")] = "",
    url: Url = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Which targets are left alone because they fail.

    A line without a task type is the agent's own breaker: the agent cannot be reached at all.

    Example: agentgate breakers stock_agent
    """
    found = gate_api.read(url, "v1", "breakers")
    if agent:
        found["breakers"] = [breaker for breaker in found["breakers"] if breaker["agent"] == agent]
    if as_json:
        print_json(found)
    elif found["breakers"]:
        print_table(COLUMNS, [_row(breaker) for breaker in found["breakers"]])
    else:
        say("no breakers yet: one appears with the first call of a task type")


def _row(breaker: dict[str, Any]) -> tuple[object, ...]:
    again = breaker["tries_again_in_s"]
    return (
        breaker["agent"],
        breaker["task_type"] or "(the agent itself)",
        breaker["state"],
        f"{breaker['state_s']:.0f} s",
        breaker["ok"],
        breaker["faults"],
        f"{breaker['ratio']:.0%}",
        breaker["opened"],
        "" if again is None else f"in {again:.0f} s",
    )
