"""`agentgate agents`, `agents off`, `agents on` and `agents quota`."""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from agentgate.cli import exits, gate_api
from agentgate.cli.exits import CommandError
from agentgate.cli.options import AsJson, Url
from agentgate.cli.output import print_json, print_table, say
from agentgate.model.card import served_type

ABBREVIATED: Final = 6  # skills named in the table
WAYS_MAX: Final = 2  # endpoints named in the table
TIME: Final = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)\s*(?P<unit>[smh]?)")
UNIT_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0}
PER_DEFAULT: Final = "60s"
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
    """Who is there; switch an agent off and on, limit what may be asked of it.

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
        print_table(
            ("AGENT", "TIER", "INSTANCES", "STATE", "REACHED BY", "HANDLES"), [_row(agent) for agent in found["agents"]]
        )
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


@agents.command()
def quota(
    agent: Agent,
    units: Annotated[
        float | None, typer.Option("--units", metavar="N", help="Cost units of all callers together.", min=0)
    ] = None,
    per: Annotated[
        str, typer.Option("--per", metavar="TIME", help="In any so many seconds: 60s, 5m, 1h.")
    ] = PER_DEFAULT,
    *,
    none: Annotated[bool, typer.Option("--none", help="Take the agent's quota away.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Limit what may be asked of an agent, show the limit, or take it away.

    It holds from now on, and when the agent, or the gate, starts again.

    Example: agentgate agents quota stock_agent --units 600 --per 60s
    """
    if none and units is not None:
        raise CommandError("either --units or --none", exits.MISUSED)
    if per != PER_DEFAULT and units is None:
        raise CommandError("--per needs --units: how many in that time?", exits.MISUSED)
    path = "v1", "agents", agent, "quota"
    if none:
        now = gate_api.delete(url, *path)
    elif units is not None:
        now = gate_api.put(url, *path, body={"units": units, "per_seconds": seconds_of(per)})
    else:
        now = _quota_of(agent, gate_api.read(url, "v1", "agents")["agents"])
    if as_json:
        print_json(now)
    elif now["quota"] is None:
        say(f"{agent} has no quota of its own")
    else:
        say(f"{agent} may be asked for {now['quota']['units']:g} units in any {now['quota']['per_seconds']:g} s")


def _quota_of(agent: str, known: list[dict[str, Any]]) -> dict[str, Any]:
    """As the gate would say it after setting it."""
    for item in known:
        if item["agent"] == agent:
            found = item.get("quota")
            quota = None if found is None else {"units": found["units"], "per_seconds": found["per_s"]}
            return {"agent": agent, "quota": quota}
    raise CommandError(f"there is no agent {agent}; `agentgate agents` names all")


def seconds_of(text: str) -> float:
    """A time with its unit; a bare number is seconds."""
    found = TIME.fullmatch(text.strip())
    if found is None:
        raise CommandError(f"{text!r} is no time; write 60s, 5m or 1h", exits.MISUSED)
    return float(found["number"]) * UNIT_S[found["unit"] or "s"]


def _switch(agent: str, url: str | None, wanted: dict[str, Any], *, as_json: bool) -> None:
    now = gate_api.put(url, "v1", "agents", agent, "switch", body=wanted)
    if as_json:
        print_json(now)
    else:
        say(f"{agent} is on" if now["on"] else f"{agent} is off, by {now['off']['by']}: {now['off']['reason']}")


def _row(agent: dict[str, Any]) -> tuple[object, ...]:
    states = Counter(map(_state_of, agent["instances"]))
    state = ", ".join(
        state if count == len(agent["instances"]) else f"{count} {state}" for state, count in states.items()
    )
    if (switched := agent.get("off")) is not None:
        state = f"off by {switched['by']}: {switched['reason']}" + (f" ({state})" if state else "")
    skills = skills_of(agent)
    named = skills[:ABBREVIATED]
    more = len(skills) - len(named)
    handles = ", ".join(named) + (f", {more} more" if more > 0 else "")
    return agent["agent"], agent["tier"], len(agent["instances"]), state, _reached_by(agent), handles


def _state_of(instance: dict[str, Any]) -> str:
    """In words; of an HTTP instance there is no link to be seen, but what has come back."""
    state: str = instance["state"]
    if trouble := instance["trouble"]:
        return f"{state}, but {trouble}"
    return f"{state}, no answer yet" if state == "registered" else state


def _reached_by(agent: dict[str, Any]) -> str:
    """`link`, or where its HTTP instances are."""
    ways = list(dict.fromkeys(instance["endpoint"] or instance["kind"] for instance in agent["instances"]))
    more = len(ways) - WAYS_MAX
    return ", ".join(ways[:WAYS_MAX]) + (f", {more} more" if more > 0 else "")


def skills_of(agent: dict[str, Any]) -> list[str]:
    """What it can be asked for; its checks and degraded handlers are the gate's to call."""
    return [name for name in _task_types(agent) if served_type(name) == name]


def _task_types(agent: dict[str, Any]) -> list[str]:
    return [skill["task_type"] for skill in agent["skills"]]
