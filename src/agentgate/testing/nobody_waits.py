"""Nobody waits for ever, and nobody is told so in vain; see `invariants`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from agentgate.model.link import LockParams
from agentgate.testing.checker import Checker
from agentgate.testing.oracle import Awaited, Picture, Room
from agentgate.testing.soundness import Soundness
from agentgate.testing.witness import Asked, First, Key, Wanted

if TYPE_CHECKING:
    from agentgate.testing.tap import Refused
    from agentgate.testing.world import World

SIGNAL_S: Final = 3.0  # REQUIREMENTS D2
LOOK_S: Final = 0.1  # between two looks of the oracle

Circle: TypeAlias = frozenset[int]  # a knot by the numbers of the calls that its units wait for


class NobodyWaits(Checker):
    """3: no dead unit without a signal; one victim per knot; no false alarm.

    Judged by the agents' own view of who waits for whom (`oracle`). A knot that stands for longer than it may, without
    one of its units having been told, was overlooked. Who was told had to be in a knot at that moment; a call that was
    told waits no more, so a second victim of the same knot is a false alarm.
    """

    number = 3

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sound = Soundness(world.agents)
        self._told: set[int] = set()  # calls, by their numbers
        self._since: dict[Circle, float] = {}
        self._looked_at = 0.0
        self.knots_seen = 0

    def after_event(self) -> None:
        """Hold what the gate has just said against the oracle; every now and then, look for what it has overlooked."""
        now, refused = self.witness.now(), self.world.tap.refused
        if not refused and now < self._looked_at + LOOK_S:
            return
        self._sound.look(now)
        for call in refused:
            self._judge(call, now)
        refused.clear()
        if now >= self._looked_at + LOOK_S:
            self._looked_at = now
            self._look(now)

    def at_end(self) -> None:
        """Nothing is left of all waits."""
        gateway = self.gateway
        left = {
            "the graph": len(gateway.policies.graph),
            "resting": len(gateway.resting),
            "locks": len(list(gateway.policies.locks)),
            "knots that are followed": gateway.waits.deadlocks.followed,
        }
        if any(left.values()):
            self.fail(f"at the end there is something left of waits: {left}")

    # Whoever was told.

    def _judge(self, call: Refused, now: float) -> None:
        params = call.params
        if not params.token:
            self.fail(f"call {call.id} of {call.end.name} was told of a knot, though no unit waits for it")
        asked = self._asked_by(call)
        if not asked:
            return
        picture = self._doubtful(now)
        knotted = [one for one in asked if picture.is_knotted(one.by_unit)]
        if not knotted and self._may_judge(call.end.process, min(one.started_at for one in asked), now):
            self.fail(f"{asked[0].by_unit} was told that {_shown(asked[0])} closes a knot; there is none")
        told = (knotted or asked)[0].number
        self._told.add(told)
        self._since.update({circle: now for circle in self._since if told in circle})

    def _not_told(self, first: First) -> tuple[Asked, ...]:
        return tuple(one for one in first.any_of if one.number not in self._told)

    def _asked_by(self, call: Refused) -> list[Asked | Wanted]:
        """Which calls or locks of which units this may have been."""
        open_ones = [one for one in self._asked_like(call) if one.number not in self._told]
        runs = self.witness.live_runs
        return [one for one in open_ones if one.by_unit in runs and runs[one.by_unit].instance == call.end.process]

    def _asked_like(self, call: Refused) -> list[Asked] | list[Wanted]:
        params = call.params
        if isinstance(params, LockParams):
            return [one for one in self.witness.live_locks.values() if (one.name,) == params.names]
        key = Key(params.target, f"{call.end.name}:{params.task_type}:{params.business_key}:{params.action}")
        return [one for one in self.witness.waiting.values() if one.key == key]

    def _may_judge(self, process: str, began: float, now: float) -> bool:
        """Whether the caller has been heard all the time, so that this was said just now."""
        return self._sound.settled(process, now, now - began)

    def _doubtful(self, now: float) -> Picture:
        """What may be so for the gate: what was so when it last heard of each process, and what has come since."""
        lag_s = 2 * self.world.one_way_s + LOOK_S
        gone = self.world.losses.gone
        instances = {run.instance for run in self.witness.runs.values() if gone.get(run.instance, now) >= now - lag_s}
        oldest = {name: self._sound.horizon(name, now, lag_s) for name in instances}
        known = [run for run in self.witness.runs.values() if run.instance in oldest]
        runs = [run for run in known if _counts(run.ended_at, oldest[run.instance])]
        units = {run.unit: run.instance for run in runs}

        def may_be_open(one: Awaited, ended_at: float | None) -> bool:
            return one.by_unit in units and _counts(ended_at, oldest[units[one.by_unit]])

        locks = [one for one in self.witness.locks if may_be_open(one, one.ended_at)]
        single: list[Asked | Wanted] = [
            one for one in self.witness.asked if one.holds_up and may_be_open(one, one.ended_at)
        ]
        single += [one for one in locks if may_be_open(one, one.granted_at)]
        waits: list[Awaited] = [one for one in single if one.number not in self._told]
        firsts = [one for one in self.witness.firsts if may_be_open(one, one.ended_at)]
        waits += [replace(one, any_of=left) for one in firsts if (left := self._not_told(one))]
        return Picture(runs, waits, self._rooms(now, lag_s, in_doubt=True), locks=locks, in_doubt=True)

    # Whoever was overlooked.

    def _look(self, now: float) -> None:
        lag_s = 2 * self.world.one_way_s
        picture = self._certain(now, lag_s)
        since, self._since = self._since, {}
        for knot in picture.knots():
            circle = frozenset(number for unit in knot for one in picture.calls_of(unit) for number in _numbers(one))
            self.knots_seen += circle not in since
            began = self._since[circle] = since.get(circle, now)
            if now - began > SIGNAL_S + self.world.slack_s:
                units = ", ".join(f"{unit} ({self.witness.live_runs[unit].key.shown})" for unit in sorted(knot))
                self.fail(f"nobody was told for {now - began:.1f} s that these wait for one another: {units}")

    def _certain(self, now: float, lag_s: float) -> Picture:
        """What is so for certain: of processes that are heard, and of calls that have not run before."""
        witness = self.witness
        runs = list(witness.live_runs.values())
        busy = {
            run.unit
            for run in runs
            if run.told() or run.until <= now or not self._sound.settled(run.instance, now, lag_s)
        }
        waits: list[Awaited] = [one for one in witness.waiting.values() if self._is_open(one, now)]
        locks = list(witness.live_locks.values())
        if now > self.world.tap.started_at + self.world.settings.calls.recovery_s:  # until then no lock is given away
            waits += [one for one in locks if one.granted_at is None]
        held = [one for one in locks if one.granted_at is not None]
        firsts = [one for one in witness.firsts if one.ended_at is None and one.by_unit in witness.live_runs]
        waits += [one for one in firsts if all(self._may_come_once(part, now) for part in one.any_of)]
        return Picture(runs, waits, self._rooms(now, lag_s, in_doubt=False), locks=held, busy=frozenset(busy))

    def _is_open(self, asked: Asked, now: float) -> bool:
        return asked.holds_up and self._may_come_once(asked, now)

    def _may_come_once(self, asked: Asked, now: float) -> bool:
        """Whether its answer is neither on the way nor about to be tried for again."""
        if asked.ended_at is not None or (asked.deadline is not None and asked.deadline <= now):
            return False
        earlier = self.witness.runs_by_key.get(asked.key, [])
        return all(run.ended_at is None or run.ended_at < asked.started_at for run in earlier)

    def _rooms(self, now: float, lag_s: float, *, in_doubt: bool) -> dict[str, Room]:
        return {name: self._room(name, now, lag_s, in_doubt=in_doubt) for name in self.world.cast}

    def _room(self, agent: str, now: float, lag_s: float, *, in_doubt: bool) -> Room:
        role, losses = self.world.cast[agent], self.world.losses
        there = [one.life.instance for one in self.world.agents if one.name == agent and one.life is not None]
        here = [name for name in there if name not in losses.leaving and name not in losses.gone]
        settled = [name for name in here if self._sound.settled(name, now, lag_s)]
        gone = {run.instance for run in self.witness.runs.values() if run.agent == agent}.difference(there, losses.gone)
        return Room(
            instances=(*here, *sorted(gone)),
            sound=frozenset(settled).difference(self._put_out() if in_doubt else ()),
            running_max=role.concurrency,
            open_max=role.concurrency * (self.world.settings.slots.open_factor if role.rests else 1),
            rests=role.rests,
            known=in_doubt or len(settled) == len(there) + len(gone),
        )

    def _put_out(self) -> set[str]:
        """Which instances the gate has put out, or on trial: they take nothing beside what they have open."""
        states = self.gateway.policies.slots.states(self.witness.now())
        return {one.name for agent in states for one in agent.instances if one.standing != "in"}


def _numbers(awaited: Awaited) -> list[int]:
    return [one.number for one in awaited.any_of] if isinstance(awaited, First) else [awaited.number]


def _shown(awaited: Asked | Wanted) -> str:
    return f"its call {awaited.key.shown}" if isinstance(awaited, Asked) else f"its wait for lock {awaited.name}"


def _counts(ended_at: float | None, oldest: float) -> bool:
    return ended_at is None or ended_at >= oldest
