"""Callers whose own limit is below the gate's: they give up on work that goes on.

What is noticed (REQUIREMENTS B7). Two limits that contradict each other waste work: the caller is gone when the answer
comes, asks again, and meets its own earlier call. Rules:

- A call says how long it waits, and that is less than what the target usually takes (`core.timeout` knows its P95).
- A client leaves before its calls are over, `LEAVES` times within `RECENT_S`, and always after about the same time:
  there is a time-out in it that the gate was not told of. People who give up do not do it on the dot.

Both are for people to judge; no call is treated differently.

How it works. The first is one comparison when an attempt begins. For the second, the last times of leaving are kept for
each caller, target and task type that was ever left, in a bounded map; nothing is done for calls that end as usual.

Not covered: why the target takes so long.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from agentgate.core.bounded import BoundedMap
from agentgate.model import Call

LEAVES: Final = 5  # fewer may be chance
RECENT_S: Final = 600.0
SPREAD: Final = 0.2  # of the longest of them; a timer is much more exact, people are not
LEAST_S: Final = 0.05  # sooner, it was not a limit: the caller had no use for the call
CALLERS_MAX: Final = 10_000


class Leaving(NamedTuple):
    """A client leaves after this time, though the gate would have gone on until its own limit."""

    after_s: float
    gate_s: float


class Patience:
    """When clients leave."""

    def __init__(self) -> None:
        self._left: BoundedMap[tuple[str, ...], deque[tuple[float, float]]] = BoundedMap(CALLERS_MAX)

    def __len__(self) -> int:
        return len(self._left)

    def left(self, call: Call, now: float) -> Leaving | None:
        """Its client has left; what is to be said about that, if it looks like a time-out."""
        waited_s = now - call.received_at
        if waited_s < LEAST_S:
            return None
        name = (call.tenant, call.caller, call.target, call.task_type)
        leaves = self._left.get(name)
        if leaves is None:
            self._left.sweep(now, RECENT_S)
            leaves = self._left[name] = deque(maxlen=LEAVES)
        leaves.append((now, waited_s))
        times = [waited for at, waited in leaves if now - at <= RECENT_S]
        if len(times) < LEAVES or max(times) - min(times) > SPREAD * max(times):
            return None
        return Leaving(sorted(times)[LEAVES // 2], call.deadline - call.received_at)


def is_too_short(call: Call, fair_s: float) -> bool:
    """Whether its caller said that it waits less than the target usually takes."""
    return 0.0 < call.patience_s < fair_s and call.attempt == 1
