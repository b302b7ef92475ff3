"""Clients that leave before their calls are over: who always does so after the same time is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgate.core.patience import Patience

if TYPE_CHECKING:
    from agentgate.model import Call
    from agentgate.ports.clock import Clock
    from agentgate.runtime.reporter import Reporter


class Departures:
    """Called with each call whose client has left."""

    def __init__(self, clock: Clock, findings: Reporter) -> None:
        self._patience = Patience()
        self._clock = clock
        self._findings = findings

    def __call__(self, call: Call) -> None:
        """Note it; it may be the one that shows a time-out."""
        found = self._patience.left(call, self._clock.now())
        if found is not None:
            self._findings.report(
                "caller_limit_below_gate",
                f"{call.caller} > {call.target}.{call.task_type}",
                tenant=call.tenant,
                leaves_after_s=round(found.after_s, 3),
                gate_s=round(found.gate_s, 3),
            )
