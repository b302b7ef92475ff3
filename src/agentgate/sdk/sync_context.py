"""What a sync handler is given: the same names as `Context`, blocking. It runs in a thread of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from functools import partial
from typing import Any, TypeVar, Unpack, overload

from agentgate.model.lock import LockMode, LockScope
from agentgate.model.outcome import Outcome, failure
from agentgate.sdk.calling import CallOptions, value_of
from agentgate.sdk.fake import Answers, FakePort, MadeCall, fake_unit
from agentgate.sdk.locks import SyncLocking
from agentgate.sdk.port import Done, LinkPort
from agentgate.sdk.unit import Unit, UnitView

T = TypeVar("T")


class SyncContext(UnitView):
    """The second argument of a handler that is not async. Its threads may share it."""

    def __init__(self, unit: Unit, port: LinkPort) -> None:
        super().__init__(unit, port)
        self._waiting: dict[Future[Outcome], Callable[[], None]] = {}  # and how to give up

    @overload
    def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: type[T],
        **options: Unpack[CallOptions],
    ) -> T: ...

    @overload
    def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...

    def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """As `Context.call`, blocking this thread."""
        params = self._call(target, task_type, business_key, payload, **options)
        start = partial(self._port.start_call, params, self._call_deadline(params))
        return value_of(self._wait(start, self._port.cancel_call), returns)

    def lock(
        self, *names: str, mode: LockMode = "exclusive", timeout: float | None = None, scope: LockScope = "message"
    ) -> SyncLocking:
        """As `Context.lock`, blocking this thread: `with ctx.lock("invoices", "stock") as held:`."""
        return SyncLocking(self._unit, self._port, *self._lock(names, mode, timeout, scope), self._wait)

    def interrupt(self) -> None:
        """End what waits, calls and requests for locks: the unit was told to stop.

        The handler sees `CallFailed` with code `cancelled`.
        """
        for answered, give_up in list(self._waiting.items()):
            give_up()
            _settle(answered, failure("cancelled", sent=True, detail="the unit was told to stop"))

    def _wait(self, start: Callable[[Done], str], give_up: Callable[[str], None]) -> Outcome:
        answered: Future[Outcome] = Future()
        request_id = start(lambda outcome: _settle(answered, outcome))
        self._waiting[answered] = partial(give_up, request_id)
        try:
            if self._unit.told == "cancel":
                self.interrupt()
            return answered.result()
        finally:
            del self._waiting[answered]

    @staticmethod
    def fake(answers: Answers | None = None, *, deadline: float = 30.0, **unit: Any) -> FakeSyncContext:
        """As `Context.fake`, for handlers that are not async."""
        return FakeSyncContext(FakePort(answers or {}), deadline, unit)


class FakeSyncContext(SyncContext):
    """A `SyncContext` without a gate: `calls` and `notes` are what the handler did with it."""

    def __init__(self, port: FakePort, deadline: float, unit: Mapping[str, Any]) -> None:
        super().__init__(fake_unit(deadline, unit), port)
        self._fake = port

    @property
    def calls(self) -> list[MadeCall]:
        """The calls that were made, in order."""
        return self._fake.calls

    @property
    def locks(self) -> list[tuple[str, ...]]:
        """The names of the locks that were asked for, in order; all were granted at once."""
        return self._fake.locks

    @property
    def notes(self) -> list[str]:
        """The progress notes, in order."""
        return self._fake.notes

    def pass_time(self, seconds: float) -> None:
        """Let time go by: the deadline comes nearer."""
        self._fake.pass_time(seconds)


def _settle(answered: Future[Outcome], outcome: Outcome) -> None:
    with contextlib.suppress(InvalidStateError):  # the other of two ends, in another thread, was first
        answered.set_result(outcome)
