"""What is said about a knot: to the unit that would have closed it, and to the one that has to give way.

Decides the words. A cycle is told by agent, task type and business key, which is what its reader knows, and by what
each waits on where that is no plain call; ids of units are for the gate. A long one is cut in its middle, where least
is lost. What people can change about it depends on the kinds of waits in it.

Not covered: what the unit that is told can do; that is the advice of the code `deadlock`.
"""

from __future__ import annotations

from typing import Final

from agentgate.model import Knot, KnotStep, Problem, WaitKind, problem

STEPS_SHOWN = 12  # of a cycle: a longer one is cut in its middle

_ON: Final[dict[WaitKind, str]] = {  # a call that runs needs no words
    "slot": ": queues for a slot",
    "exclusive": ": queues for its exclusive key",
    "join": ": has joined the same key",
    "lock": ": lock '{}'",
    "signal": ": signal '{}'",
    "first": ": the first of several",
}

LOOK: Final = "Look at the cycle, while it stands with `agentgate waits`."
ASK_LESS: Final = "Let one of them pass on what the other needs instead of asking back."
WAYS_OUT: Final[dict[WaitKind, str]] = {  # for people, who can change the agents
    "slot": "Let one of them pass on what the other needs instead of asking back, or let its handler wait without "
    "holding a slot (`async def`).",
    "lock": "Take locks before calling others, and several in one request.",
    "signal": "Send a signal before waiting for one.",
}


def refused(knot: Knot) -> Problem:
    """The answer to a call, a join or a lock that would have closed this knot."""
    return problem("deadlock", detail=f"it would wait for itself: {cycle_text(knot)}")


def released(knot: Knot) -> Problem:
    """What the unit is told whose wait is ended so that the others get on."""
    return problem("deadlock", detail=f"everybody in this cycle waits for the next: {cycle_text(knot)}")


def way_out(knot: Knot) -> str:
    """What people can do about it, by the kinds of waits in its cycle."""
    kinds = {step.kind for step in knot.cycle}
    return " ".join(advice for kind, advice in WAYS_OUT.items() if kind in kinds) or ASK_LESS


def cycle_text(knot: Knot) -> str:
    """`a.confirm(order_1) > b.reserve(order_1): lock 'x' > a.confirm(order_1)`."""
    steps = [*map(_shown, knot.cycle), _name(knot.cycle[0])]
    if len(steps) > STEPS_SHOWN:
        half = STEPS_SHOWN // 2
        steps = [*steps[:half], f"... {len(steps) - 2 * half} more ...", *steps[-half:]]
    return " > ".join(steps)


def _shown(step: KnotStep) -> str:
    return _name(step) + _ON.get(step.kind, "").format(step.target)


def _name(step: KnotStep) -> str:
    return f"{step.agent}.{step.task_type}({step.business_key})"
