"""kill -9 of the gate under load, again and again: what was promised holds (DESIGN 4.2, 4.5)."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import signal
from collections.abc import Iterator
from pathlib import Path

from agentgate import Gate
from tests.e2e.buyers import Answers, Deal
from tests.e2e.effects_file import PLACE, units_of
from tests.e2e.live_gate import AGENTS, LiveGate, agents

SEED = 27
KILLING_S = 30.0
UP_S_MAX, DOWN_S_MAX = 4.0, 1.0  # of a gate; starting takes about as long again
STILLBORN = 0.2  # of the gates are killed in their first moments, while they take over what the last one left
BUYERS = 16
IMPATIENCE_S = (0.5, 3.0)
SETTLE_S = 12.0

# What an impatient caller may be told: it was too short for the work, or its target's queue was too long for it.
TOO_SHORT = {"deadline_exceeded", "overloaded"}


class Storm:
    """One gate, killed at random moments, and buyers who do not care."""

    def __init__(self, gate: LiveGate, rng: random.Random) -> None:
        self.gate = gate
        self.rng = rng
        self.answers = Answers("shop")
        self.numbers = itertools.count(1)
        self.rejoined = 0.0
        self.is_over = False

    async def run(self) -> None:
        """The storm, and the calm after it: every deal that is open is asked again, then every deal once more."""
        async with Gate(self.gate.url, name="shop") as one, Gate(self.gate.url, name="shop") as two:
            async with asyncio.TaskGroup() as group:
                for _ in range(BUYERS):
                    group.create_task(self.buy(one, two))
                group.create_task(self.kill())
            for _ in range(2):
                await self.answers.ask_all(two, self.answers.open(), at_once=16, timeout_s=SETTLE_S)
            await self.answers.ask_all(one, list(self.answers.deals.values()), at_once=64, timeout_s=SETTLE_S)

    async def kill(self) -> None:
        """Kill and start again until the time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + KILLING_S
        while True:
            is_stillborn = self.rng.random() < STILLBORN
            await asyncio.sleep(self.rng.uniform(0, 0.3 if is_stillborn else UP_S_MAX))
            if loop.time() >= until:
                break
            self.rejoined += (await asyncio.to_thread(self.gate.metrics))["rejoined_units"]
            await asyncio.to_thread(self.gate.kill)
            await asyncio.sleep(self.rng.uniform(0, DOWN_S_MAX))
            await asyncio.to_thread(self.gate.start)
        self.is_over = True

    async def buy(self, one: Gate, two: Gate) -> None:
        """One buyer: deal after deal, some impatient, some asked twice at once over two connections."""
        while not self.is_over:
            deal = self.deal()
            is_impatient = deal.target == "warehouse" and self.rng.random() < 0.3
            timeout = self.rng.uniform(*IMPATIENCE_S) if is_impatient else None
            async with asyncio.TaskGroup() as group:
                group.create_task(self.answers.ask(one, deal, timeout))
                if self.rng.random() < 0.3:
                    group.create_task(self.answers.ask(two, deal, None))

    def deal(self) -> Deal:
        """A new business key; its effect comes somewhere in the time it takes."""
        number = next(self.numbers)
        seconds = 0.05 * 60 ** self.rng.random()
        before_s = seconds * self.rng.random()
        payload = {"id": f"order_{number}", "before_s": before_s, "after_s": seconds - before_s}
        target, task_type = ("desk", "sell") if self.rng.random() < 0.3 else ("warehouse", "reserve")
        return Deal(target, task_type, f"order_{number}", payload)


@contextlib.contextmanager
def shop(folder: Path) -> Iterator[tuple[LiveGate, Path]]:
    """A gate with agents; they leave in good order, which they do only when every answer is acknowledged."""
    effects = folder / "effects"
    files = [AGENTS / "warehouse.py", AGENTS / "warehouse.py", AGENTS / "desk.py"]
    with LiveGate(folder) as gate, agents(gate, files, **{PLACE: str(effects)}) as running:
        yield gate, effects
        assert running.stop(signal.SIGTERM) == 0
        assert sum('"exit_code":0' in line for line in running.out.all()) == len(files)


def test_a_gate_that_is_killed_again_and_again_loses_nothing_and_runs_nothing_twice(tmp_path: Path) -> None:
    """A8, C3, C4, C5, G1: through kills at random moments, one key has one effect and one answer, and none is unknown.

    Whoever was told a value finds exactly one effect, by the unit that was named; what a caller was too short for is
    asked again under its key and has one true answer; in the end nothing is held and every answer is acknowledged.
    """
    with shop(tmp_path) as (gate, file):
        storm = Storm(gate, random.Random(SEED))
        asyncio.run(storm.run())
        figures = gate.metrics()
        assert (figures["running_units"], figures["queued_calls"]) == (0, 0)

    answers, effects = storm.answers, units_of(file)
    assert (gate.lives >= 4, storm.rejoined > 0, len(answers.deals) >= 30) == (True, True, True)
    assert [failure for failure in answers.failures if failure.timeout_s in (None, SETTLE_S)] == []
    assert set(answers.codes()) <= TOO_SHORT
    assert not answers.open()
    assert {key: units for key, units in effects.items() if len(units) > 1} == {}
    for key, values in answers.values.items():
        assert all(value == values[0] for value in values)
        assert effects[key] == [values[0]["unit"]]
        if "reserved" in values[0]:
            assert effects[f"desk:reserve:{answers.deals[key].key}:run"] == [values[0]["reserved"]]
