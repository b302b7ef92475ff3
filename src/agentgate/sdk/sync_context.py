"""What a sync handler is given: the same names as `Context`, blocking. It runs in a thread of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, Unpack, overload

import msgspec

from agentgate.errors import LinkDown
from agentgate.model.link import CallParams, SignalParams, WaitForParams
from agentgate.model.lock import LockMode, LockScope
from agentgate.model.outcome import Outcome
from agentgate.sdk.calling import CallOptions
from agentgate.sdk.fake import Answers, FakePort, MadeCall, MadeSignal, fake_unit
from agentgate.sdk.handle import check_first
from agentgate.sdk.locks import SyncLocking
from agentgate.sdk.port import Done, LinkPort
from agentgate.sdk.sync_handle import SyncHandle, wait_any
from agentgate.sdk.unit import Unit, UnitView

T = TypeVar("T")


class SyncContext(UnitView):
    """The second argument of a handler that is not async. Its threads may share it."""

    def __init__(self, unit: Unit, port: LinkPort) -> None:
        super().__init__(unit, port)
        self._open: set[SyncHandle[Any]] = set()

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
        return self._hear(self._begin(params, returns, awaited=True))

    @overload
    def start(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: type[T],
        **options: Unpack[CallOptions],
    ) -> SyncHandle[T]: ...

    @overload
    def start(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> SyncHandle[Any]: ...

    def start(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> SyncHandle[Any]:
        """As `Context.start`; `handle.result()` blocks this thread."""
        params = self._call(target, task_type, business_key, payload, **options)
        return self._begin(params, returns, awaited=False)

    @overload
    def wait_for(
        self,
        name: str,
        *,
        about: str | None = None,
        from_agent: str | None = None,
        timeout: float | None = None,
        returns: type[T],
    ) -> T: ...

    @overload
    def wait_for(
        self,
        name: str,
        *,
        about: str | None = None,
        from_agent: str | None = None,
        timeout: float | None = None,
        returns: Any = None,
    ) -> Any: ...

    def wait_for(
        self,
        name: str,
        *,
        about: str | None = None,
        from_agent: str | None = None,
        timeout: float | None = None,
        returns: Any = None,
    ) -> Any:
        """As `Context.wait_for`, blocking this thread."""
        return self._hear(self._begin(self._wait_for(name, about, from_agent, timeout), returns, awaited=True))

    def signal(self, name: str, *, about: str | None = None, value: Any = None, to: str | None = None) -> None:
        """As `Context.signal`, blocking this thread."""
        self._hear(self._begin(self._signal(name, about, value, to), None, awaited=True))

    def first(self, *handles: SyncHandle[T]) -> T:
        """As `Context.first`, of handles, blocking this thread."""
        check_first(handles, (SyncHandle,), "handles of this context")
        try:
            wait_any(self._port, handles)
            return next(handle for handle in handles if handle.done).value()
        finally:
            for handle in handles:
                handle.cancel()

    def lock(
        self, *names: str, mode: LockMode = "exclusive", timeout: float | None = None, scope: LockScope = "message"
    ) -> SyncLocking:
        """As `Context.lock`, blocking this thread: `with ctx.lock("invoices", "stock") as held:`."""
        return SyncLocking(self._unit, self._port, *self._lock(names, mode, timeout, scope), self._wait)

    def interrupt(self) -> None:
        """End what is open: the unit was told to stop. The handler sees `CallFailed` with code `cancelled`."""
        for handle in list(self._open):
            handle.interrupt()

    def end(self) -> None:
        """The handler has ended: cancel what it has started and not waited for. For whoever runs handlers."""
        with contextlib.suppress(LinkDown):  # the process is leaving, and nothing of it goes on
            for handle in list(self._open):
                handle.cancel()

    def _begin(
        self, params: CallParams | WaitForParams | SignalParams, returns: Any, *, awaited: bool
    ) -> SyncHandle[Any]:
        if not awaited:
            params = msgspec.structs.replace(params, awaited=False)
        deadline = self._unit.deadline if isinstance(params, SignalParams) else self._call_deadline(params)
        return self._open_handle(partial(self._port.start_call, params, deadline), self._port.cancel_call, returns)

    def _wait(self, start: Callable[[Done], str], give_up: Callable[[str], None]) -> Outcome:
        return self._open_handle(start, give_up, None).answered.result()

    def _open_handle(
        self, start: Callable[[Done], str], give_up: Callable[[str], None], returns: Any
    ) -> SyncHandle[Any]:
        handle = SyncHandle[Any](self._port, start, give_up, returns)
        self._open.add(handle)
        handle.answered.add_done_callback(lambda _answered: self._open.discard(handle))
        if self._unit.told == "cancel":
            handle.interrupt()
        return handle

    @staticmethod
    def _hear(handle: SyncHandle[T]) -> T:
        handle.answered.result()
        return handle.value()

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
    def signals(self) -> list[MadeSignal]:
        """The signals that were sent, in order."""
        return self._fake.signals

    @property
    def notes(self) -> list[str]:
        """The progress notes, in order."""
        return self._fake.notes

    def pass_time(self, seconds: float) -> None:
        """Let time go by: the deadline comes nearer."""
        self._fake.pass_time(seconds)
