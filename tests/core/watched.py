"""A watchdog with units and waits, told step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentgate.core.open_wait import Group, OpenWait, UnitFacts
from agentgate.core.waits import Waits
from agentgate.core.watchdog import Watchdog, WatchdogOptions
from agentgate.model import Call, Outcome


class Outside:
    """An aim that comes by itself."""

    def groups(self) -> Sequence[Group]:
        return ()


def call(task_type: str = "look", payload: Any = None) -> Call:
    return Call(id="c", target="other", task_type=task_type, payload=payload, effect="read")


class Watched:
    """A watchdog and the graph beside it; the unit `u` has a time-out of 10 s and began at 0."""

    def __init__(self, **options: float) -> None:
        self.graph = Waits()
        self.dog = Watchdog(self.graph, WatchdogOptions(**options))
        self.dog.begin("u", 10.0, 0.0)
        self.graph.begin(UnitFacts(unit="u", agent="a", task_type="do"))

    def ask(self, asked: Call, now: float) -> OpenWait | None:
        """The unit waits for a call; None: it is refused."""
        wait = OpenWait(unit="u", kind="call", aim=Outside(), since=now)
        self.graph.open(wait)
        if self.dog.asks(wait, asked, now):
            return wait
        self.end(wait, now)
        return None

    def end(self, wait: OpenWait, now: float) -> None:
        """The wait is over."""
        self.dog.over(wait, now)
        self.graph.close(wait)

    def get(self, wait: OpenWait, asked: Call, outcome: Outcome, now: float) -> None:
        """The call came to this."""
        self.end(wait, now)
        self.dog.got("u", asked, outcome, now)

    def look(self, now: float) -> list[str]:
        """What is to be done about the unit."""
        return [step.action for step in self.dog.tick(now)]
