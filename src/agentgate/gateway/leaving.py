"""Callers that leave before they are answered: who does so by a limit of its own below the gate's is reported (B7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgate.core.patience import Patience
    from agentgate.model import Call
    from agentgate.ports.clock import Clock
    from agentgate.runtime.reporter import Reporter


class Leaving:
    """Told of every caller that leaves."""

    def __init__(self, patience: Patience, findings: Reporter, clock: Clock) -> None:
        self._patience = patience
        self._findings = findings
        self._clock = clock

    def __call__(self, call: Call) -> None:
        """The caller of this call does not wait any longer."""
        found = self._patience.left(call, self._clock.now())
        if found is not None:
            self._findings.report(
                "caller_limit_below_gate",
                f"{call.caller} > {call.target}.{call.task_type}",
                tenant=call.tenant,
                leaves_after_s=round(found.after_s, 3),
                gate_s=round(found.gate_s, 3),
            )
