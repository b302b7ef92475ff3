"""`agentgate agents`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from agentgate.cli import gate_api
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import print_json, print_table, say

ABBREVIATED: int = 6  # skills named in the table


def agents(
    capability: Annotated[
        str, typer.Argument(metavar="TASK_TYPE", help="Only agents that handle this task type.")
    ] = "",
    url: Url = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Who is there, and what they can do.

    Example: agentgate agents reserve
    """
    found = gate_api.read(url, "v1", "agents")
    if capability:
        found["agents"] = [agent for agent in found["agents"] if capability in _task_types(agent)]
    if as_json:
        print_json(found)
    elif found["agents"]:
        print_table(("AGENT", "TIER", "INSTANCES", "STATE", "HANDLES"), [_row(agent) for agent in found["agents"]])
    else:
        say("no agents" + (f" that handle {capability}" if capability else "; start one with `agentgate run FILE`"))


def _row(agent: dict[str, Any]) -> tuple[object, ...]:
    states = Counter(instance["state"] for instance in agent["instances"])
    state = ", ".join(
        state if count == len(agent["instances"]) else f"{count} {state}" for state, count in states.items()
    )
    named = _task_types(agent)[:ABBREVIATED]
    more = len(agent["skills"]) - len(named)
    handles = ", ".join(named) + (f", {more} more" if more > 0 else "")
    return agent["agent"], agent["tier"], len(agent["instances"]), state, handles


def _task_types(agent: dict[str, Any]) -> list[str]:
    return [skill["task_type"] for skill in agent["skills"]]
