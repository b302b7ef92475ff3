"""What a scripted unit does: drawn when it starts, from how long it takes to how it ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from agentgate.model import Effect

End = Literal[
    "answer",
    "rejected",  # a final business "no"
    "later",  # promises that nothing happened
    "raise",  # an ordinary exception
    "malformed",  # an output that does not fit the schema
    "hang",  # until it is told to stop
    "die",  # its process dies under it
]
News = Literal["", "tell", "hear"]
Manner = Literal[
    "in_turn",
    "gathered",
    "first",  # whoever answers first; the others are not needed any more
    "background",  # started, and waited for later, if it cannot go on without them, or never
]
MANNER_WEIGHTS = (4, 4, 1, 1)
FAULTY_ENDS: tuple[End, ...] = tuple(end for end in get_args(End) if end != "answer")

# Without faults most units answer; the rest is everyday business.
CALM_ENDS: dict[End, float] = {"answer": 0.92, "rejected": 0.03, "later": 0.02, "raise": 0.02, "malformed": 0.01}

# Mean durations and how common they are: quick look-ups, ordinary work, a model call, a long one.
DURATIONS_S: dict[float, float] = {0.05: 0.7, 0.5: 0.2, 2.0: 0.08, 8.0: 0.02}

CHILDREN_SHARE_BY_DEPTH = (0.35, 0.15)  # of the units at this depth; deeper ones work alone
CHILDREN_MAX = 3
LOOP_SHARE = 0.03  # of the units with children: one child is the unit's own work again
LOCKS = ("till", "van", "door")
LOCK_SHARE = 0.08  # of the units: they work under a lock
LOCK_WAITS_S = (None, 0.5, 3.0)
FORGIVING_SHARE = 0.8  # of the units: they go on when a child fails
NEWS_SHARE = 0.08  # of the units: one says something about its order, and as many wait for such news
STUBBORN_SHARE = 0.2  # of the units that are told to stop: they go on for a while


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A kind of work every scripted agent does; the kinds that the ledger tells apart, and exclusive work."""

    name: str
    effect: Effect
    repeatable: bool = False
    check: bool = False
    timeout_s: float | None = None
    exclusive: bool = False  # one at a time for each business key


TASKS: tuple[Task, ...] = (
    Task(name="look", effect="read", timeout_s=3.0),
    Task(name="book", effect="write", timeout_s=4.0),
    Task(name="charge", effect="write", check=True),
    Task(name="stamp", effect="write", repeatable=True, timeout_s=3.0),
    Task(name="move", effect="write", timeout_s=4.0, exclusive=True),
)
TASK_WEIGHTS = (4, 3, 2, 2, 2)
TASK_BY_NAME = {task.name: task for task in TASKS}
WAY_TASK = "charge"  # of those who are told whom to call: a write without a time-out waits as long as its call may


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A call that a unit makes; `loop` means the unit's own work again, `way` whom its unit is to call in turn."""

    target: str
    task: Task
    timeout_s: float | None
    loop: bool = False
    way: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The course of one unit."""

    before_s: float
    children: tuple[Child, ...] = ()
    manner: Manner = "in_turn"
    forgiving: bool = True  # goes on when a child fails, instead of failing too
    lock: str = ""  # that it holds while its children work
    lock_wait_s: float | None = None
    after_s: float = 0.0
    end: End = "answer"
    effect_first: bool = True  # whether a write's effect is there before an end other than an answer
    stubborn_s: float = 0.0
    news: News = ""  # before it calls anybody


def draw_task(draws: random.Random) -> Task:
    """A kind of work, reads most often."""
    return draws.choices(TASKS, TASK_WEIGHTS)[0]


def draw_plan(draws: random.Random, targets: Sequence[str], *, depth: int, fault_share: float) -> Plan:
    """The course of a unit at this depth of its chain, which may call these targets."""
    return Plan(
        before_s=_draw_duration_s(draws),
        children=_draw_children(draws, targets, depth),
        manner=draws.choices(get_args(Manner), MANNER_WEIGHTS)[0],
        forgiving=draws.random() < FORGIVING_SHARE,
        lock=draws.choice(LOCKS) if draws.random() < LOCK_SHARE else "",
        lock_wait_s=draws.choice(LOCK_WAITS_S),
        after_s=draws.expovariate(1 / 0.02),
        end=_draw_end(draws, fault_share),
        effect_first=draws.choice((True, False)),
        stubborn_s=draws.uniform(0, 3) if draws.random() < STUBBORN_SHARE else 0.0,
        news=draws.choices(("tell", "hear", ""), (NEWS_SHARE, NEWS_SHARE, 1 - 2 * NEWS_SHARE))[0],
    )


def way_plan(way: Sequence[str], takes_s: float) -> Plan:
    """The course of a unit that was told how long to take and whom to call then, who is told the rest of the way."""
    children = [
        Child(target=target, task=TASK_BY_NAME[WAY_TASK], timeout_s=None, way=tuple(way[1:])) for target in way[:1]
    ]
    return Plan(before_s=takes_s, children=tuple(children))


def _draw_duration_s(draws: random.Random) -> float:
    mean_s = draws.choices(tuple(DURATIONS_S), tuple(DURATIONS_S.values()))[0]
    return draws.expovariate(1 / mean_s)


def _draw_children(draws: random.Random, targets: Sequence[str], depth: int) -> tuple[Child, ...]:
    share = CHILDREN_SHARE_BY_DEPTH[depth] if depth < len(CHILDREN_SHARE_BY_DEPTH) else 0.0
    if draws.random() >= share:
        return ()
    children = [
        Child(target=draws.choice(targets), task=draw_task(draws), timeout_s=draws.choice((None, None, 0.5, 3.0)))
        for _ in range(draws.randint(1, CHILDREN_MAX))
    ]
    if draws.random() < LOOP_SHARE:
        children[0] = Child(target=children[0].target, task=children[0].task, timeout_s=None, loop=True)
    return tuple(children)


def _draw_end(draws: random.Random, fault_share: float) -> End:
    if draws.random() < fault_share:
        return draws.choice(FAULTY_ENDS)
    return draws.choices(tuple(CALM_ENDS), tuple(CALM_ENDS.values()))[0]
