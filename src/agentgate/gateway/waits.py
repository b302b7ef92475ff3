"""What units wait for: the gateway's side of the wait graph (`core.waits`).

A call that would close a knot, by waits that are certain, is refused where it would begin to wait for somebody: in the
queue of its target, or at a flight that it would join. A knot that closes in another way is found by the timer
(`control/deadlocks.py`), which ends the wait of one unit: its call comes to an outcome as if the target had answered.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentgate.core.deadlock import LOOK, cycle_text, refused, way_out
from agentgate.core.deadlocks import OBSERVED, Deadlocks, How
from agentgate.core.open_wait import OpenWait, UnitFacts
from agentgate.gateway.aims import CallAim
from agentgate.model import plain, tenant_of, told

if TYPE_CHECKING:
    from agentgate.core.policy import Mode
    from agentgate.core.slots import Slots
    from agentgate.core.waits import Waits
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.resting import Resting
    from agentgate.gateway.units import Unit, Units
    from agentgate.gateway.watching import Watching
    from agentgate.model import Knot, Outcome, Problem, WaitKind
    from agentgate.ports.clock import Clock
    from agentgate.ports.routes import Routes
    from agentgate.runtime.reporter import Reporter


class CallWait(OpenWait, eq=False, kw_only=True):
    """A unit's wait for one call; `ended_with` says why it was ended from outside.

    `task` is what carries the call, while it can be ended so. Of a call that its unit has only started this is no open
    wait: it is what a declared wait names (`gateway/awaiting.py`).
    """

    passage: Passage
    task: asyncio.Task[object] | None = None
    ended_with: Problem | None = None

    def release(self, problem: Problem) -> None:
        """End it now, or as soon as it begins: the call comes to this outcome."""
        if self.ended_with is None:
            self.ended_with = problem
            if self.task is not None:
                self.task.cancel()


class UnitWaits:
    """Opens and closes them, and asks the graph about those that might close a knot."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        graph: Waits,
        *,
        mode: Mode,
        units: Units,
        slots: Slots,
        resting: Resting,
        watching: Watching | None,
        routes: Routes,
        clock: Clock,
        findings: Reporter,
    ) -> None:
        self._graph = graph
        self._mode = mode
        self._units = units
        self._slots = slots
        self._resting = resting
        self._watching = watching
        self._routes = routes
        self._clock = clock
        self._findings = findings
        self.enforces = mode == "enforce"  # observed only, a knot is reported and nobody has to heed it
        units.listen(self)
        self.deadlocks = Deadlocks()

    def of(self, passage: Passage) -> CallWait:
        """The wait of the unit that makes this call, whether it has begun or not."""
        if passage.wait is not None:
            return passage.wait
        call = passage.call
        wait = passage.wait = CallWait(
            unit=call.parent_unit,
            kind="call",
            aim=CallAim(passage, self._slots),
            since=self._clock.now(),
            deadline=call.deadline,
            target=call.target,
            task_type=call.task_type,
            business_key=call.business_key,
            trace_id=call.trace_id,
            span_id=call.span_id,
            passage=passage,
        )
        return wait

    def open(self, passage: Passage) -> CallWait:
        """A unit makes this call, and begins to wait for it, unless it has only started it."""
        wait = self.of(passage)
        wait.task = asyncio.current_task()
        if passage.call.awaited:
            self.begin(wait)
        return wait

    def leave(self, wait: CallWait) -> None:
        """Its call has come to an end, whatever that is."""
        wait.task = None
        if wait.passage.call.awaited:
            self.close(wait)
        elif self._watching is not None:
            self._watching.over(wait)

    def repeats(self, wait: CallWait) -> Problem | None:
        """Why its unit may not ask this once more; None: it may."""
        return self._watching.asks(wait, wait.passage.call) if self._watching is not None else None

    def came(self, wait: CallWait, outcome: Outcome) -> None:
        """The call came to this: what its unit has done and spent counts when somebody has to give way."""
        unit = self._units.get(wait.unit)
        if unit is not None:
            unit.spent += wait.passage.call.cost
            unit.effects += outcome.ok and wait.passage.call.keyed
            if self._watching is not None:
                self._watching.got(unit, wait.passage.call, outcome)

    def begin(self, wait: OpenWait) -> None:
        """A wait of any kind; `close` it on every path."""
        is_seen = self._mode != "off" or self._watching is not None
        unit = self._units.get(wait.unit) if is_seen else None
        if unit is not None and not unit.ended:
            if self._graph.facts(wait.unit) is None:
                self._graph.begin(self._facts(unit))
            self._graph.open(wait)
        self._resting.began(wait.unit)

    def begin_checked(self, wait: OpenWait) -> None:
        """As `begin`; one that would close a knot is ended at once."""
        self.begin(wait)
        knot = self.refusal(wait)
        if knot is not None and self.enforces:
            wait.release(knot)

    def close(self, wait: OpenWait) -> None:
        """It is over, whatever it came to."""
        if self._watching is not None:
            self._watching.over(wait)
        self._graph.close(wait)
        if not self._graph.of(wait.unit):
            self._graph.end(wait.unit)
        self.deadlocks.ended(wait, self._clock.now())
        self._resting.ended(wait.unit)

    def unit_opened(self, unit: Unit) -> None:
        """The graph knows it from its first wait on."""

    def unit_ended(self, unit: Unit) -> None:
        """Whatever it still has under way, nobody waits with it."""
        self._graph.end(unit.id)

    def unit_overstays(self, unit: Unit) -> None:
        """It was told to stop: what it waits for is its own affair."""
        self._graph.end(unit.id)

    def check(self, passage: Passage, kind: WaitKind) -> Problem | None:
        """What is wrong with waiting like this; None: nothing, or no unit waits for this call from its first moment."""
        wait = passage.wait
        if wait is None or not passage.call.awaited:
            return None
        wait.kind = kind
        return self.refusal(wait)

    def moved_on(self, passage: Passage) -> None:
        """What it stood in line for, or had joined, is behind it: it waits like any call."""
        if passage.wait is not None:
            passage.wait.kind = "call"

    def refusal(self, wait: OpenWait) -> Problem | None:
        """Why this wait must not go on; reported, whether or not the caller heeds it."""
        knot = self._graph.check(wait) if self._mode != "off" else None
        if knot is None:
            return None
        self.found("refused", knot)
        return refused(knot)

    def found(self, how: How, knot: Knot, victim: str = "") -> None:
        """Count a knot, and tell people of it; `victim` is the unit that gives way to the others."""
        how = how if self.enforces else OBSERVED[how]
        cycle = [wait for step in knot.cycle for wait in self._graph.of(step.unit) if wait.span_id == step.span_id]
        if self.enforces and (unit := self._units.get(victim)) is not None:
            unit.was_victim = True
        if not self.deadlocks.note(how, cycle, self._clock.now()):
            return
        tenant = tenant_of(knot.cycle[0].agent)
        self._findings.report(
            "deadlock",
            " > ".join(plain(step.agent) for step in knot.cycle),
            tenant=tenant,
            advice=f"{LOOK} {way_out(knot)}",
            how=how,
            cycle=told(tenant, cycle_text(knot)),
            trace_id=knot.cycle[0].trace_id,
            **({"victim": victim} if victim else {}),
        )

    def _facts(self, unit: Unit) -> UnitFacts:
        call = unit.call
        route = self._routes.resolve(call.tenant, plain(call.agent))
        return UnitFacts(
            unit=unit.id,
            agent=call.agent,
            task_type=call.task_type,
            business_key=call.business_key,
            tier=route.card.tier if route is not None else "standard",
            priority=call.priority,
            started_at=unit.started_at,
            compensations=unit.effects,
            cost=unit.spent,
            was_victim=unit.was_victim,
        )
