"""What is said about a knot: to the unit that would have closed it, and to the one that has to give way.

Decides the words. A cycle is told by agent, task type and business key, which is what its reader knows; ids of units
are for the gate. A long one is cut in its middle, where least is lost.

Not covered: what to do about it; that is the advice of the code `deadlock`.
"""

from __future__ import annotations

from agentgate.model import Knot, KnotStep, Problem, problem

STEPS_SHOWN = 12  # of a cycle: a longer one is cut in its middle
WAY_OUT = (  # for people, who can change the agents
    "Let one of them pass on what the other needs instead of asking back, or let its handler wait without holding a "
    "slot (`async def`)."
)


def refused(knot: Knot) -> Problem:
    """The answer to a call, a join or a lock that would have closed this knot."""
    return problem("deadlock", detail=f"it would wait for itself: {cycle_text(knot)}")


def released(knot: Knot) -> Problem:
    """What the unit is told whose wait is ended so that the others get on."""
    return problem("deadlock", detail=f"everybody in this cycle waits for the next: {cycle_text(knot)}")


def cycle_text(knot: Knot) -> str:
    """`a.confirm(order_1) > b.reserve(order_1) > a.confirm(order_1)`."""
    steps = [_shown(step) for step in (*knot.cycle, knot.cycle[0])]
    if len(steps) > STEPS_SHOWN:
        half = STEPS_SHOWN // 2
        steps = [*steps[:half], f"... {len(steps) - 2 * half} more ...", *steps[-half:]]
    return " > ".join(steps)


def _shown(step: KnotStep) -> str:
    return f"{step.agent}.{step.task_type}({step.business_key})"
