"""Who waits for what, and a knot of those who wait for one another, as shown to people and told to agents."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

WaitKind = Literal["call", "slot", "exclusive", "join", "lock", "signal", "task", "first"]


class Party(Struct, frozen=True, kw_only=True):
    """A unit and what it works on. Without `unit`: a caller outside of all units, by its name."""

    unit: str = ""
    agent: str
    task_type: str = ""
    business_key: str = ""


class Wait(Struct, frozen=True, kw_only=True):
    """One wait, as it stood when it was looked at. Times are seconds since the epoch.

    `target`, `task_type`, `business_key` and `key` say what for. `holders` are the units that could end it, the first
    ones of `holders_count`; there are none when nobody can be named: time, or somebody outside of the gate. A wait that
    is not `certain` may be satisfied by somebody nobody knows of. `behind`: it cannot end before a knot elsewhere is
    undone.
    """

    id: str
    waiter: Party
    kind: WaitKind
    target: str
    task_type: str
    business_key: str
    key: str = ""
    holders: tuple[Party, ...] = ()
    holders_count: int = 0
    certain: bool = True
    behind: bool = False
    since: float
    deadline: float
    trace_id: str
    span_id: str


class KnotStep(Struct, frozen=True, kw_only=True):
    """A unit of a cycle, what it works on, and how it waits for the next one.

    `kind` says by what it waits: `slot` when the next one is among those who hold the slots that it needs. `target` is
    for what, by its name: an agent, a lock or several, a signal.
    """

    unit: str
    agent: str
    task_type: str
    business_key: str
    kind: WaitKind
    target: str = ""
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


class StandingKnot(Struct, frozen=True, kw_only=True):
    """A knot that stands, for people: `cycle` as a line and step by step, the first ones of `cycle_count`.

    `units` is how many units hold one another up. One that is not `certain` may be undone by somebody nobody knows of.
    """

    text: str
    cycle: tuple[KnotStep, ...]
    cycle_count: int
    units: int
    certain: bool
    advice: str


class WaitPicture(Struct, frozen=True, kw_only=True):
    """Who waits for whom at one moment. `at`, in seconds since the epoch; `seq` grows with time.

    `mode` is how the wait graph is switched: off, only callers outside of all units are seen. `truncated`: there are
    more waits than are shown.
    """

    seq: int
    at: float
    mode: str
    waits: tuple[Wait, ...]
    knots: tuple[StandingKnot, ...]
    truncated: bool = False


class WaitDifference(Struct, frozen=True, kw_only=True):
    """What leads from the picture `after` to the picture `seq`: `closed` are ids; `knots` are all that stand now."""

    seq: int
    after: int
    at: float
    opened: tuple[Wait, ...]
    changed: tuple[Wait, ...]
    closed: tuple[str, ...]
    knots: tuple[StandingKnot, ...]
    truncated: bool = False
