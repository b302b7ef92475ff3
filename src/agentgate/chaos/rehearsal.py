"""Runs a drill once: makes its calls at their times, looks at the gate meanwhile, and counts what came of it.

Time is the event loop's, so the same rehearsal takes place in virtual and in real time. What is drawn is drawn by name,
so two runs of one seed make the same calls at the same moments, whatever becomes of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from msgspec import Struct

from agentgate import CallFailed, Gate
from agentgate.chaos.bars import Figures
from agentgate.chaos.drill import Drill, Load
from agentgate.chaos.figures import Made, Totals, figures_of
from agentgate.model import Finding

LOOK_S: Final = 0.1

Draw = Callable[[str, int], float]  # what for, and the how manieth; in [0, 1)


class Scene(Protocol):
    """A gate with the agents of a drill at work."""

    @property
    def gate(self) -> Gate:
        """A client of the gate."""
        ...

    async def totals(self) -> Totals:
        """What the gate has counted."""
        ...

    async def findings(self) -> list[Finding]:
        """What the gate has noticed."""
        ...


def _nobody(_: str) -> None:
    """Nobody wants to hear how far it is."""


class Rehearsed(Struct, frozen=True):
    """What came of one run."""

    figures: Figures
    findings: list[Finding]


async def rehearse(drill: Drill, scene: Scene, draw: Draw, tell: Callable[[str], None] = _nobody) -> Rehearsed:
    """One run. Ends when every call has ended, which is at its deadline at the latest; `tell` hears of each phase."""
    run = _Rehearsal(drill, scene, tell)
    async with asyncio.TaskGroup() as watching:
        watch = watching.create_task(run.watch())
        await run.make_calls(draw)
        watch.cancel()
    await run.look()
    figures = figures_of(
        run.made,
        [load.name for load in drill.loads],
        fault=drill.fault,
        named_at=run.named_at,
        totals=run.totals,
    )
    return Rehearsed(figures, await scene.findings())


class _Rehearsal:
    def __init__(self, drill: Drill, scene: Scene, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.made: list[Made] = []
        self.named_at: list[float] = []
        self.totals = Totals()
        self._drill = drill
        self._scene = scene
        self._now = asyncio.get_running_loop().time
        self._began = self._now()

    async def make_calls(self, draw: Draw) -> None:
        async with asyncio.TaskGroup() as calls:
            for load in self._drill.loads:
                for number, at_s in enumerate(moments(self._drill, load, draw), 1):
                    calls.create_task(self._call(load, number, at_s))
                    if load.again_after_s is not None:
                        calls.create_task(self._call(load, number, at_s + load.again_after_s, again=True))
            for phase, seconds in self._drill.phases.items():
                self._tell(f"{phase}, {seconds:g} s ...")
                await asyncio.sleep(seconds)
            self._tell("until the last call has ended ...")

    async def watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        self.totals = await self._scene.totals()
        self.named_at += [self._now()] * (self.totals.circles - len(self.named_at))

    async def _call(self, load: Load, number: int, at_s: float, *, again: bool = False) -> None:
        await asyncio.sleep(self._began + at_s - self._now())
        sent_at, code = self._now(), ""
        options: dict[str, Any] = {"effect": load.effect, "timeout": load.timeout_s, "join": not again}
        try:
            await self._scene.gate.call(load.target, load.task_type, f"{load.keys}-{number}", load.payload, **options)
        except CallFailed as failed:
            code = failed.code
        self.made.append(Made(load=load.name, sent_at=sent_at, ended_at=self._now(), code=code, again=again))


def moments(drill: Drill, load: Load, draw: Draw) -> Iterator[float]:
    """When the calls of a load are made: evenly, each somewhere within its own step."""
    number = 0
    for phase in load.during:
        begins = drill.begins_at(phase) + load.after_s
        for step in range(round(drill.phases[phase] * load.per_s)):
            number += 1
            yield begins + (step + draw(load.keys, number)) / load.per_s
