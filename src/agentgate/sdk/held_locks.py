"""The locks that this process holds, as its link knows them: what a hello reports, and who hears of a loss.

A request for locks is a call like any other until it is granted (`sdk.calls`). From then on it stands here, until it is
given back, its unit has ended or the gate says that it is lost. What is forgotten here while there is no connection is
not in the next hello, and so the gate gives it back.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentgate.model.link import LockGrant, LockParams, LockReport
from agentgate.model.outcome import Outcome, failure
from agentgate.sdk.port import Done, Lost


class HeldLocks:
    """By the id of the request. Bounded by the gate, which bounds what a process may hold."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[LockReport, Lost]] = {}

    def granted_to(self, lock_id: str, unit: str, params: LockParams, lost: Lost, done: Done) -> Done:
        """What hears the outcome of a request: it writes down what was granted, then tells `done`."""

        def answered(outcome: Outcome) -> None:
            if outcome.ok:
                outcome = self._enter(lock_id, unit, params, lost, outcome)
            done(outcome)

        return answered

    def drop(self, lock_id: str) -> bool:
        """It is given back; whether it was held."""
        return self._held.pop(lock_id, None) is not None

    def end_unit(self, unit: str) -> None:
        """The gate frees the locks of a message at the end of its unit."""
        for lock_id, (report, _) in list(self._held.items()):
            if report.unit == unit and report.scope == "message":
                del self._held[lock_id]

    def lose(self, lock_ids: Iterable[str]) -> None:
        """These are others' now."""
        for lock_id in lock_ids:
            held = self._held.pop(lock_id, None)
            if held is not None:
                held[1]()

    def reports(self) -> tuple[LockReport, ...]:
        """What a hello says."""
        return tuple(report for report, _ in self._held.values())

    def _enter(self, lock_id: str, unit: str, params: LockParams, lost: Lost, outcome: Outcome) -> Outcome:
        try:
            grant = msgspec.convert(outcome.value, LockGrant)
        except msgspec.ValidationError as error:
            return failure("internal", sent=True, detail=f"the gate granted locks in a form of its own: {error}")
        report = LockReport(
            id=lock_id, names=params.names, mode=params.mode, scope=params.scope, epoch=grant.epoch, unit=unit
        )
        self._held[lock_id] = (report, lost)
        return outcome
