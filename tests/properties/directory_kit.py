"""What the tests of the directory share: a clock moved by hand, a listener that believes what it is told."""

from __future__ import annotations

from typing import Any

from agentgate.directory import Directory
from agentgate.model import Card, Skill


class HandClock:
    """Time that a test moves by hand."""

    def __init__(self, now: float = 0.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time


class Witness:
    """A listener that believes what it is told, and nothing else."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.state: dict[str, str] = {}
        self.concurrency: dict[str, int] = {}

    def instance_joined(self, agent: str, instance: str, card: Card) -> None:
        self.concurrency[instance] = card.concurrency
        self._note("joined", instance)

    def instance_away(self, agent: str, instance: str) -> None:
        self._note("away", instance)

    def instance_draining(self, agent: str, instance: str) -> None:
        self._note("draining", instance)

    def instance_lost(self, agent: str, instance: str) -> None:
        self._note("lost", instance)

    def _note(self, what: str, instance: str) -> None:
        self.told.append((what, instance))
        self.state[instance] = what


def card(agent: str, *task_types: str, **more: Any) -> Card:
    return Card(agent=agent, skills=tuple(Skill(task_type=task_type) for task_type in task_types), **more)


def watched(clock: HandClock, **more: Any) -> tuple[Directory, Witness]:
    directory, witness = Directory(clock, **more), Witness()
    directory.listen(witness)
    return directory, witness


def move(directory: Directory, clock: HandClock, until: float) -> None:
    """Let time pass as the timer would: a tick at every deadline on the way."""
    while (deadline := directory.next_deadline()) is not None and deadline <= until:
        clock.time = max(clock.time, deadline)
        directory.tick()
    clock.time = until
