"""Whether an instance may register now, whichever way it comes (`core.admission`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from agentgate.model import logged

if TYPE_CHECKING:
    from agentgate.core.admission import Admission
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.units import Units
    from agentgate.ports.clock import Clock
    from agentgate.ports.routes import Routes

log = structlog.get_logger(__name__)


class Registrations:
    """The limit on registrations; whoever may still have something in hand always passes."""

    def __init__(self, admission: Admission, *, routes: Routes, units: Units, clock: Clock, counters: Counters) -> None:
        self._admission = admission
        self._routes = routes
        self._units = units
        self._clock = clock
        self._counters = counters

    def ask(self, instance: str) -> float | None:
        """None: it is taken. Otherwise the seconds after which it should come again."""
        now = self._clock.now()
        is_known = self._routes.knows(instance) or bool(self._units.of_instance(instance))
        was_crowded = self._admission.is_crowded(now)
        wait_s = self._admission.ask(now, known=is_known)
        if wait_s is None:
            self._counters.registrations += 1
            return None
        self._counters.registrations_put_off += 1
        if not was_crowded:  # one line a storm, not one an agent
            log.warning("registrations_put_off", instance=logged(instance), again_in_s=round(wait_s, 3))
        return wait_s


def come_again(wait_s: float) -> str:
    """What an instance is told that has to come again."""
    return f"more agents register than the directory takes at a time; come again in {wait_s:.1f} s"
