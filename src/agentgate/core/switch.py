"""The switch of an agent: what a call is told when its target, or its caller, has been switched off (REQUIREMENTS A6).

Decides whether a call may pass. Rules:

- While an agent is off, no call to it begins, be it a first attempt, another one, or one that waited in its queue. What
  runs goes on, its answers count, and a key that is done is answered from the ledger: that asks nothing of the agent.
- An agent that is off begins nothing of its own either: its root calls are refused. What its running units call passes,
  because they are to finish; so does a call that nobody can assign to a unit, since it may be one of theirs.
- Every refusal says who switched the agent off, when and why, and leaves the key free.

Not covered: who may switch (the server), and where the switch is kept (the directory, with the agent's route).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from agentgate.model import Call, Problem, Route, SwitchedOff, problem

AGAIN_S: Final = 30.0  # nobody knows when a person will switch it on again; asking more often is no use


def target_refusal(target: Route | None) -> Problem | None:
    """Why no call may begin at this agent; None when it is on."""
    if target is None or target.settings.off is None:
        return None
    said = problem("no_route", retry_after_s=AGAIN_S, detail=_detail(target.agent, target.settings.off))
    advice = f"Nothing was done. Take your degraded branch, or wait until {target.agent} is switched on again."
    return replace(said, advice=advice)


def caller_refusal(caller: Route | None, call: Call) -> Problem | None:
    """Why this call may not begin because of who makes it; None when it may."""
    if caller is None or caller.settings.off is None or call.parent_unit or not call.linked:
        return None
    said = problem("forbidden", detail=_detail(caller.agent, caller.settings.off))
    return replace(said, advice="Begin nothing new; what is in hand may be finished.")


def _detail(agent: str, off: SwitchedOff) -> str:
    since = datetime.fromtimestamp(off.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"{agent} was switched off by {off.by} on {since}: {off.reason}"
