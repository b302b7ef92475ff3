"""Who waits for what, and a knot of those who wait for one another, as shown to people and told to agents."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

WaitKind = Literal["call", "slot", "exclusive", "join", "lock", "signal", "task", "first"]


class Wait(Struct, frozen=True, kw_only=True):
    """One wait of one unit, as it stood when it was looked at. Times are monotonic seconds of the gate's clock.

    `agent` is whose unit waits; `target`, `task_type` and `business_key` say what for. A wait that is not `certain` may
    be satisfied by somebody nobody knows of. `behind`: when it was checked, it could not end before a knot elsewhere
    is undone.
    """

    unit: str
    agent: str
    kind: WaitKind
    target: str
    task_type: str
    business_key: str
    trace_id: str
    span_id: str
    certain: bool
    behind: bool
    since: float
    deadline: float


class KnotStep(Struct, frozen=True, kw_only=True):
    """A unit of a cycle, what it works on, and how it waits for the next one.

    `kind` says by what it waits: `slot` when the next one is among those who hold the slots that it needs.
    """

    unit: str
    agent: str
    task_type: str
    business_key: str
    kind: WaitKind
    certain: bool
    trace_id: str
    span_id: str


class Knot(Struct, frozen=True, kw_only=True):
    """Units of which none can go on before another one of them does.

    `cycle` is one shortest way round, from the unit in question back to it: each waits for the next, the last for the
    first. `members` are all units of the knot.
    """

    cycle: tuple[KnotStep, ...]
    members: tuple[str, ...]

    @property
    def certain(self) -> bool:
        """Whether every wait of the cycle is one; otherwise the knot is suspected."""
        return all(step.certain for step in self.cycle)
