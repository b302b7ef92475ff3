"""What the stages of the path share: the policies, the ledger, the units, and who is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgate.core.policy import Mode
    from agentgate.gateway.checks import Checks
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.flights import Flights
    from agentgate.gateway.ledger import Ledger
    from agentgate.gateway.options import CallOptions
    from agentgate.gateway.parking import Parking
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.policies import Policies
    from agentgate.gateway.schemas import Schemas
    from agentgate.gateway.units import Unit, Units
    from agentgate.gateway.waits import UnitWaits
    from agentgate.model import Problem, WaitKind
    from agentgate.ports.clock import Chance, Clock
    from agentgate.ports.routes import Routes
    from agentgate.ports.trace import SpanSink
    from agentgate.runtime.reporter import Reporter


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Everything a stage may be built from; assembled once, by `Gateway`."""

    clock: Clock
    chance: Chance
    routes: Routes
    spans: SpanSink
    findings: Reporter
    modes: Mapping[str, Mode]
    options: CallOptions
    counters: Counters
    policies: Policies
    ledger: Ledger
    flights: Flights
    units: Units
    waits: UnitWaits
    checks: Checks
    schemas: Schemas
    parkings: Mapping[str, Parking]  # by the name of the stage that parks
    watches_backlog: bool  # whether a long queue opens a breaker
    attempts_max: int
    invoke: Callable[[Unit], bool]  # hands a unit to its process; False: it is not connected
    new_id: Callable[[str], str]

    def mode(self, mechanism: str | None) -> Mode:
        """How a mechanism is switched; what cannot be switched is enforced."""
        return "enforce" if mechanism is None else self.modes.get(mechanism, "enforce")

    def closes_knot(self, passage: Passage, kind: WaitKind) -> Problem | None:
        """Why a call may not wait as it is about to; observed only, that is noted and it waits."""
        knot = self.waits.check(passage, kind)
        if knot is not None and not self.waits.enforces:
            self.note(passage, "would_deadlock")
            return None
        return knot

    def note(self, passage: Passage, would: str) -> None:
        """Observe mode: write down what enforcing would have done, on the call's span and in a counter."""
        passage.notes.append(would)
        self.counters.would[would] += 1
