"""The gateway's side of the watchdog (`core.watchdog`): asks processes how their units are, and gives units up.

A write whose unit is stuck is not run again: nobody knows what the unit has done. So its callers are released, with
the answer of the skill's degraded handler or with `needs_human`, and the unit is told that its time is over. Its slot
is free a moment later, its record stays open, and its own answer counts whenever it comes. Until then a repeat of the
key gets the degraded answer again, or the state.

Reads, and skills declared repeatable, are cut and run again by the retry loop; of those that do not stop only people
are told. Observed only, nobody is woken or released; the finding comes and the call's span says `would_release`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

import structlog

from agentgate.core.watchdog import NO_PROGRESS, Step, Watchdog
from agentgate.model import failure, plain, problem
from agentgate.runtime.later import first

if TYPE_CHECKING:
    from agentgate.core.open_wait import OpenWait
    from agentgate.core.waits import Waits
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.degraded import Degraded
    from agentgate.gateway.gateway_options import GatewayOptions
    from agentgate.gateway.peers import Peer
    from agentgate.gateway.reach import Reach
    from agentgate.gateway.units import Unit, Units
    from agentgate.model import Call, Outcome, Problem
    from agentgate.model.link import ProbeAnswer
    from agentgate.ports.clock import Clock
    from agentgate.runtime.reporter import Reporter

log = structlog.get_logger(__name__)

WOULD: Final = "would_release"
STILL_RUNS: Final = (
    "It still runs, and nobody can say how far it is: repeat the key later for its answer, or stop its process and "
    "settle the key."
)


class Watching:
    """Watches the units of a gateway; `look` is called by a timer (`control/watchdog.py`)."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        graph: Waits,
        options: GatewayOptions,
        *,
        units: Units,
        reach: Reach,
        degraded: Degraded,
        clock: Clock,
        counters: Counters,
        findings: Reporter,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._graph = graph
        self._dog = Watchdog(graph, options.watchdog)
        self._least_s = options.watchdog.least_s
        self._longest_s = options.timeout.max_s
        self._grace_s = options.calls.stop_grace_s
        self._observes = options.mechanisms.get("watchdog") == "observe"
        self._units = units
        self._reach = reach
        self._degraded = degraded
        self._clock = clock
        self._counters = counters
        self._findings = findings
        self._spawn = spawn

    def __len__(self) -> int:
        """How many units are late."""
        return len(self._dog)

    # What is heard of units that are late.

    def noted(self, unit: Unit, note: str) -> None:
        """A unit has given a progress note."""
        now = self._clock.now()
        if unit.id in self._dog:
            self._dog.noted(unit.id, note, now)
        else:
            unit.moved_at = now

    def asks(self, wait: OpenWait, call: Call) -> Problem | None:
        """A unit begins to wait for a call; a problem: it may not, because it has asked this before, and was woken."""
        if wait.unit not in self._dog or self._dog.asks(wait, call, self._clock.now()) or self._observes:
            return None
        return _repeats(call.target, call.task_type)

    def got(self, unit: Unit, call: Call, outcome: Outcome) -> None:
        """A call of a unit came to this."""
        now = self._clock.now()
        if unit.id in self._dog:
            self._dog.got(unit.id, call, outcome, now)
        else:
            unit.moved_at = now

    def over(self, wait: OpenWait) -> None:
        """A wait is over, whatever it came to."""
        self._dog.over(wait, self._clock.now())

    def beat(self, peer: Peer, lag_ms: float) -> None:
        """A sign of life of a process: an answer too, to whoever was asked."""
        if len(self._dog):
            self._heard(peer.instance, lag_ms)

    def answered(self, peer: Peer, answer: ProbeAnswer | None) -> None:
        """A process says how its units are; None: it does not know the question, and lives."""
        if answer is None:
            self._heard(peer.instance, peer.lag_ms)
            return
        for unit in self._late_of(peer.instance):
            unit.health = answer.units.get(unit.id, unit.health)
        self._heard(peer.instance, max(answer.lag_ms, 0.0))

    # What is done about them.

    def look(self) -> None:
        """Begin to watch whoever is late by now, and do what is due."""
        now = self._clock.now()
        for unit_id in [unit_id for unit_id in self._dog if self._units.get(unit_id) is None]:
            self._dog.end(unit_id)
        for unit in self._units.running():
            timeout_s = self._timeout_s(unit)
            if now >= unit.started_at + timeout_s and unit.id not in self._dog:
                self._dog.begin(unit.id, timeout_s, unit.moved_at)
        asked: dict[str, list[str]] = {}
        for step in self._dog.tick(now):
            late = self._units.get(step.unit)
            assert late is not None, "the ended ones have gone"
            if step.action == "ask":
                asked.setdefault(late.instance, []).append(late.id)
            elif step.action == "wake":
                self._wake(late)
            elif not late.ended:
                self._give_up(late, step)
        for instance, units in asked.items():
            self._ask(instance, tuple(units))

    def _timeout_s(self, unit: Unit) -> float:
        """What its skill declares to be the longest honest time; else what its attempt was given."""
        call, plan = unit.call, unit.plan
        if call.skill_timeout_s is not None:
            return call.skill_timeout_s
        if plan is None:
            return self._longest_s
        return plan.high_s if call.heavy else max(plan.timeout_s, self._least_s)

    def _late_of(self, instance: str) -> list[Unit]:
        return [unit for unit in self._units.of_instance(instance) if unit.id in self._dog]

    def _ask(self, instance: str, units: tuple[str, ...]) -> None:
        self._counters.probes += 1
        if not self._reach.probe(instance, units):  # nobody can be asked: what is known is that it has not answered
            self._heard(instance, 0.0)

    def _heard(self, instance: str, lag_ms: float) -> None:
        now = self._clock.now()
        blocked = [unit for unit in self._late_of(instance) if self._dog.heard(unit.id, lag_ms / 1000, now)]
        if blocked:
            call = blocked[0].call
            self._findings.report(
                "blocked_loop",
                plain(call.agent),
                tenant=call.tenant,
                instance=plain(instance),
                lag_s=round(lag_ms / 1000, 3),
                blocks=_one_of(self._at_work(instance)),
                units=list(map(_shown, blocked[:10])),
                trace_id=call.trace_id,
            )

    def _at_work(self, instance: str) -> list[Unit]:
        """Whose handlers may hold up the event loop of this process, the oldest first; who waits for others cannot."""
        mine = self._units.of_instance(instance)
        busy = [unit for unit in mine if unit.health not in ("waiting", "unknown") and not self._graph.of(unit.id)]
        return sorted(busy, key=lambda unit: unit.started_at)

    def _wake(self, unit: Unit) -> None:
        if self._observes:
            return
        self._counters.woken_units += 1
        for wait in self._dog.repeated(unit.id):
            wait.release(_repeats(wait.target, wait.task_type))

    def _give_up(self, unit: Unit, step: Step) -> None:
        is_first = unit in self._at_work(unit.instance)[:1]
        if is_first or not step.behind:  # who stands in line is in the finding `blocked_loop`
            self._report_stuck(unit, step)
        if unit.call.repeatable or not unit.call.keyed:
            return
        if self._observes:
            self._counters.would[WOULD] += 1
            if unit.flight is not None and unit.flight.owner is not None:
                unit.flight.owner.notes.append(WOULD)
        else:
            self._spawn(self._release(unit, step))

    def _report_stuck(self, unit: Unit, step: Step) -> None:
        call = unit.call
        self._findings.report(
            "stuck_unit",
            f"{plain(call.agent)}.{call.task_type}",
            tenant=call.tenant,
            instance=plain(unit.instance),
            unit=unit.id,
            business_key=call.business_key,
            quiet_s=round(step.quiet_s, 3),
            timeout_s=round(self._timeout_s(unit), 3),
            health=unit.health,
            trace_id=call.trace_id,
        )

    async def _release(self, unit: Unit, step: Step) -> None:
        """Tell the unit, which may end by that; else answer whoever waits for it."""
        why = f"no progress for {step.quiet_s:.1f} s"
        unit.stood_in_for = True
        self._units.stop(unit, "expire", why)
        answer = None
        until = unit.call.deadline if unit.flight is None else unit.flight.waited_until
        if until is not None:
            await first([unit.answer], min(until, self._clock.now() + self._grace_s))
            answer = await self._degraded.answer(unit, min(until, self._clock.now() + self._timeout_s(unit)))
        if unit.ended:
            return
        self._counters.released_units["degraded" if answer is not None else "needs_human"] += 1
        detail = f"{unit.call.task_type} of {plain(unit.call.agent)} shows {why}; it still runs as {unit.id}"
        self._units.give_up(unit, answer or failure("needs_human", sent=True, detail=detail, advice=STILL_RUNS))
        log.warning("unit_released", unit=unit.id, quiet_s=round(step.quiet_s, 3), degraded=answer is not None)


def _one_of(units: list[Unit]) -> str:
    """Which of these it is, as far as that is known."""
    if len(units) > 1:
        return f"one of {len(units)} at work, the oldest is {_shown(units[0])}"
    return _shown(units[0]) if units else ""


def _shown(unit: Unit) -> str:
    return f"{unit.call.task_type}({unit.call.business_key})"


def _repeats(target: str, task_type: str) -> Problem:
    return problem(NO_PROGRESS, detail=f"{target}.{task_type} was asked before, and nothing has changed since")
