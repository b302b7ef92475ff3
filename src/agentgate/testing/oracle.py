"""Who can still get on, by what the agents know of who waits for whom: brute force, at one moment.

An oracle for the wait graph of the gate (DESIGN 4.4), which it knows nothing of. It is given facts of the witness: runs
that are open, calls that they wait for, and what each agent can run. A call waits for its own runs; while there are
none, for a slot of its target and for the exclusive key of its work, as far as anybody else holds them. Who is live is
found by asking everybody again until nobody new is: a run is live when everything it waits for has a live member.

The agents do not see what the gate sees, so there are two pictures, each wrong to one side only:

- *Certain*: whatever may be otherwise counts as able to get on. What is dead in it, is dead.
- *In doubt* (`in_doubt`): whatever may have been so for the gate counts. What the gate may call dead, is dead in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, product
from typing import TypeAlias

from agentgate.testing.plan import TASK_BY_NAME
from agentgate.testing.witness import Asked, First, Run, Wanted

Group: TypeAlias = tuple[str, ...]  # units; one of them has to get on
Awaited: TypeAlias = Asked | Wanted | First


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """What an agent can run: each of its `instances` so many running and so many open units.

    Those that are not `sound` may take less, or be in another state than the gate knows. `known`: there are no others.
    `rests`: a unit that waits does not count as running.
    """

    instances: tuple[str, ...]
    sound: frozenset[str]
    running_max: int
    open_max: int
    rests: bool
    known: bool = True


class Picture:
    """One moment: what runs, what it waits for, and which requests for locks stand in the way of others.

    `busy` are units that get on whatever they wait for.
    """

    def __init__(
        self,
        runs: Iterable[Run],
        asked: Iterable[Awaited],
        rooms: Mapping[str, Room],
        *,
        locks: Iterable[Wanted] = (),
        in_doubt: bool = False,
        busy: frozenset[str] = frozenset(),
    ) -> None:
        self._runs = {run.unit: run for run in runs}
        self._asked: dict[str, list[Awaited]] = defaultdict(list)
        for one in asked:
            self._asked[one.by_unit].append(one)
        self._rooms = rooms
        self._locks = [one for one in locks if one.by_unit in self._runs]
        self._in_doubt = in_doubt
        # Whoever has ended or is to stop does so, but perhaps not for the gate.
        self._leaving = {
            run.unit for run in self._runs.values() if in_doubt and (run.ended_at is not None or run.told())
        }
        self._groups = {
            unit: [] if unit in busy else [group for one in self._asked.get(unit, ()) for group in self._groups_of(one)]
            for unit in self._runs
        }
        self.dead = self._dead()

    def calls_of(self, unit: str) -> list[Awaited]:
        """What this unit waits for."""
        return self._asked.get(unit, [])

    def knots(self) -> list[frozenset[str]]:
        """The dead that hold one another up, and nobody else holds them up."""
        reached = {unit: self.reached_from(unit) for unit in self.dead}
        knots = {frozenset(reach) for reach in reached.values() if all(reached[unit] == reach for unit in reach)}
        return sorted((knot for knot in knots if knot), key=sorted)

    def is_knotted(self, unit: str) -> bool:
        """Whether this unit is dead, and one of those it waits for itself."""
        return unit in self.reached_from(unit)

    def reached_from(self, unit: str) -> set[str]:
        """The dead that a dead unit waits for, and those that they wait for."""
        reached: set[str] = set()
        held_up = self.dead | self._leaving
        todo = [unit] if unit in self.dead else []
        while todo:
            for group in self._groups[todo.pop()]:
                if not held_up.issuperset(group):
                    continue
                todo += [member for member in group if member not in reached]
                reached.update(group)
        return reached

    def _dead(self) -> set[str]:
        dead = set(self._runs)
        while True:
            held_up = dead | self._leaving
            live = {unit for unit in dead if not any(held_up.issuperset(group) for group in self._groups[unit])}
            if not live:
                return dead
            dead -= live

    def _groups_of(self, asked: Awaited) -> list[Group]:
        """What has to come before this call, this lock, or the first of these calls does."""
        if isinstance(asked, First):  # each way has to be blocked: one of its groups, beside one of every other way's
            ways = [self._groups_of(one) for one in asked.any_of]
            return [tuple(chain.from_iterable(groups)) for groups in product(*ways)] if ways else []
        if isinstance(asked, Wanted):
            return [(one.by_unit,) for one in self._locks if one.name == asked.name and one is not asked]
        mine = [run for run in self._runs.values() if _is_for(run, asked)]
        if mine and not self._in_doubt:
            return [tuple(run.unit for run in mine)]
        targets = [asked.target] if asked.target in self._rooms else list(self._rooms) if self._in_doubt else []
        queued = [group for agent in targets for group in self._queue_of(asked, agent)]
        return [*((run.unit,) for run in mine), *queued]

    def _queue_of(self, asked: Asked, agent: str) -> list[Group]:
        """A slot of this agent, and the exclusive key of the work."""
        room = self._rooms[agent]
        slots = [self._holders(room, name) for name in room.instances]
        groups: list[Group] = []
        if slots and room.known and all(holders is not None for holders in slots):
            groups.append(tuple(unit for holders in slots for unit in holders or ()))
        if TASK_BY_NAME[asked.task_type].exclusive:
            rivals = (run for run in self._runs.values() if (run.agent, run.exclusive) == (agent, asked.business_key))
            groups += [(run.unit,) for run in rivals if not _is_for(run, asked)]
        return groups

    def _holders(self, room: Room, instance: str) -> Group | None:
        """The units of which one has to get on before this instance takes another one; None: it has room."""
        here = running = [run for run in self._runs.values() if run.instance == instance]
        if room.rests:
            running = [run for run in here if not self._asked.get(run.unit) and run.unit not in self._leaving]
        if len(running) >= room.running_max:
            return tuple(run.unit for run in running)
        is_full = len(here) >= room.open_max or instance not in room.sound
        return tuple(run.unit for run in here) if is_full else None


def _is_for(run: Run, asked: Asked) -> bool:
    """Whether the call waits for this run: a read for its own, whoever calls with a key for any of that key."""
    return run.asked == asked.number if run.asked else run.key == asked.key and run.write == asked.write
