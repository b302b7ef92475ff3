"""`agentgate agents`, `agents off` and `agents on`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from agentgate.cli import gate_api
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import print_json, print_table, say

ABBREVIATED: Final = 6  # skills named in the table
LIST: Final = "list"  # what is meant when no command is named
Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The name of the agent.")]


class ListByDefault(TyperGroup):
    """`agents [TASK_TYPE]` lists; a first word that is a command is that command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the missing word in."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args.insert(0, LIST)
        return super().parse_args(ctx, args)


agents = typer.Typer(cls=ListByDefault, rich_markup_mode=None)


@agents.callback()
def options() -> None:
    """Who is there; switch an agent off and on.

    Without a command, and with a task type in its place, it lists.

    Example: agentgate agents reserve
    """


@agents.command(name=LIST)
def list_agents(
    capability: Annotated[
        str, typer.Argument(metavar="TASK_TYPE", help="Only agents that handle this task type.")
    ] = "",
    url: Url = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Who is there, and what they can do.

    Example: agentgate agents list reserve
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


@agents.command()
def off(
    agent: Agent,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; told to every caller that is refused.")],
    url: Url = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Switch an agent off: no call to it begins, and it begins none; what runs goes on.

    It stays off when it, or the gate, starts again.

    Example: agentgate agents off stock_agent --reason "double bookings, see ticket 7"
    """
    _switch(agent, url, {"on": False, "reason": reason}, as_json=as_json)


@agents.command()
def on(agent: Agent, url: Url = None, *, as_json: AsJson = False) -> None:
    """Switch an agent on again.

    Example: agentgate agents on stock_agent
    """
    _switch(agent, url, {"on": True}, as_json=as_json)


def _switch(agent: str, url: str | None, wanted: dict[str, Any], *, as_json: bool) -> None:
    now = gate_api.put(url, "v1", "agents", agent, "switch", body=wanted)
    if as_json:
        print_json(now)
    else:
        say(f"{agent} is on" if now["on"] else f"{agent} is off, by {now['off']['by']}: {now['off']['reason']}")


def _row(agent: dict[str, Any]) -> tuple[object, ...]:
    states = Counter(instance["state"] for instance in agent["instances"])
    state = ", ".join(
        state if count == len(agent["instances"]) else f"{count} {state}" for state, count in states.items()
    )
    if (switched := agent.get("off")) is not None:
        state = f"off by {switched['by']}: {switched['reason']}" + (f" ({state})" if state else "")
    named = _task_types(agent)[:ABBREVIATED]
    more = len(agent["skills"]) - len(named)
    handles = ", ".join(named) + (f", {more} more" if more > 0 else "")
    return agent["agent"], agent["tier"], len(agent["instances"]), state, handles


def _task_types(agent: dict[str, Any]) -> list[str]:
    return [skill["task_type"] for skill in agent["skills"]]
