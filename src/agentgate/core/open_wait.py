"""The words of the wait graph: units that are open, what they wait for, and who could end a wait.

Decides what a wait means. The rules (DESIGN 4.4):

- A unit has a set of waits, all of which must clear. A wait is a list of groups, each of which must come; of a group
  one member is enough.
- A member is a unit, which comes when it ends, or a pool, which comes when one of its holders ends.
- What has no groups, a group without members and a pool with room are *outside*: something else will bring them, or
  nobody can know. A unit that is not open has ended.
- A wait is *certain*, or only *suspected*: of a signal nobody can say for sure who alone would send it.

How it works. Nothing is kept that could disagree with its source: a wait has an *aim*, which is asked anew whenever
somebody looks.

Not covered: who is dead for all that (`core.reduction`), and what is done about it (`core.waits`, `core.wait_scan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from agentgate.model import Problem, Tier, WaitKind


class Pool(Protocol):
    """What several units hold at a time, such as the slots of an agent: any holder that ends gives one back.

    Two objects for the same pool must be equal and hash alike; best is one object for each.
    """

    def holders(self) -> Sequence[str] | None:
        """The units that hold it, in an order that changes only when they do; None: there is room, or who knows."""
        ...


Member: TypeAlias = str | Pool
Group: TypeAlias = tuple[Member, ...]


class Aim(Protocol):
    """What a wait is for."""

    def groups(self) -> Sequence[Group]:
        """What must come, as of now, in an order that changes only when it does. Nothing: it will come by itself."""
        ...


class UnitFacts(Struct, eq=False, kw_only=True):
    """A unit that is open: what is shown of it, and what counts when somebody has to give way.

    `compensations` is how many steps would have to be undone, `cost` what was spent on it so far in cost units, `ran_s`
    how long earlier runs of the same work took, `started_at` monotonic seconds. `was_victim`: it gave way before. They
    may be changed while the unit is open.
    """

    unit: str
    agent: str
    task_type: str
    business_key: str = ""
    tier: Tier = "standard"
    priority: int = 5
    started_at: float = 0.0
    ran_s: float = 0.0
    compensations: int = 0
    cost: float = 0.0
    was_victim: bool = False


class OpenWait(Struct, eq=False, kw_only=True):
    """One wait of one unit; `aim` and `kind` are changed as it gets further. Times in monotonic seconds.

    `target`, `task_type`, `business_key`, `trace_id` and `span_id` are what is shown. `behind` is set by each check:
    it cannot end before a knot elsewhere is undone. `number` tells it from all others: the graph numbers them as they
    open. `parts`: of a wait for the first of several things to end, what a wait for each of them would be.
    """

    unit: str
    kind: WaitKind
    aim: Aim
    certain: bool = True
    since: float = 0.0
    deadline: float = 0.0
    target: str = ""
    task_type: str = ""
    business_key: str = ""
    trace_id: str = ""
    span_id: str = ""
    behind: bool = False
    number: int = 0
    parts: tuple[OpenWait, ...] = ()

    def release(self, problem: Problem) -> None:
        """End it now, with this answer to whoever waits; the part that has opened it says how."""
        raise NotImplementedError
