"""Where parts of the gate say what they have noticed: kept for people (`core.findings`), and logged the first time."""

from __future__ import annotations

import structlog

from agentgate.core.findings import Findings
from agentgate.model import DEFAULT_TENANT, Finding
from agentgate.ports.clock import Clock

log = structlog.get_logger("agentgate.findings")


class Reporter:
    """The findings of a gate, with the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._findings = Findings()

    @property
    def totals(self) -> dict[str, int]:
        """How many reports there were, by kind."""
        return dict(self._findings.totals)

    def report(
        self, kind: str, subject: str, *, tenant: str = DEFAULT_TENANT, advice: str = "", **evidence: object
    ) -> None:
        """Something was noticed; `evidence` are figures and names that can be written as JSON.

        `advice` is for where it is known better than by kind.
        """
        if self._findings.report(kind, subject, evidence, tenant=tenant, at=self._clock.wall(), advice=advice):
            log.warning("finding", kind=kind, subject=subject, tenant=tenant, **evidence)

    def of(self, tenant: str) -> list[Finding]:
        """A tenant's findings, what was seen last first."""
        return self._findings.of(tenant)
