"""What an async handler is given: who asks, how long there is, and a way to call others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, Unpack, overload

import msgspec

from agentgate.model.link import CallParams, WaitForParams
from agentgate.model.lock import LockMode, LockScope
from agentgate.sdk.calling import CallOptions, exchange, value_of
from agentgate.sdk.fake import Answers, FakePort, MadeCall, MadeSignal, fake_unit
from agentgate.sdk.handle import Handle, Pending, check_first, wait_any
from agentgate.sdk.locks import Locking
from agentgate.sdk.port import LinkPort
from agentgate.sdk.unit import Unit, UnitView

T = TypeVar("T")


class Context(UnitView):
    """The second argument of an async handler."""

    def __init__(self, unit: Unit, port: LinkPort) -> None:
        super().__init__(unit, port)
        self._started: set[Handle[Any]] = set()

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
    ) -> Pending[T]: ...

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
    ) -> Pending[Any]: ...

    def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Pending[Any]:
        """Call an agent by name, or `skill("reserve")`, and wait for its answer: `await` it, or hand it to `first`.

        A call not declared `effect="read"` needs a business key: from it the gate builds the idempotency key, so that
        a repeat is answered and not run again. `returns` is the type the answer is checked against and turned into;
        with `Outcome` you see whether the answer is `degraded`, or `replayed`.
        Raises `CallFailed`, whose `code`, `sent` and `advice` say what to do; `OutcomeUnknown` when nobody can tell
        whether the effect happened. Do not retry: the gate has done so as far as it helps.
        """

        def begin(*, awaited: bool) -> Handle[Any]:
            params = self._call(target, task_type, business_key, payload, **options)
            return self._begin(params, returns, awaited=awaited)

        return Pending(begin, "ctx.call")

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
    ) -> Handle[T]: ...

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
    ) -> Handle[Any]: ...

    def start(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Handle[Any]:
        """Begin a call now and wait for it later: `await` the handle, or hand it to `first`.

        What nobody has waited for when the handler ends is cancelled; a write that runs already runs on.
        """
        return self.call(target, task_type, business_key, payload, returns=returns, **options).start()

    @overload
    def wait_for(
        self,
        name: str,
        *,
        about: str | None = None,
        from_agent: str | None = None,
        timeout: float | None = None,
        returns: type[T],
    ) -> Pending[T]: ...

    @overload
    def wait_for(
        self,
        name: str,
        *,
        about: str | None = None,
        from_agent: str | None = None,
        timeout: float | None = None,
        returns: Any = None,
    ) -> Pending[Any]: ...

    def wait_for(
        self,
        name: str,
        *,
        about: str | None = None,
        from_agent: str | None = None,
        timeout: float | None = None,
        returns: Any = None,
    ) -> Pending[Any]:
        """Wait until somebody signals `name` about an object (this unit's business key); the value of the signal.

        A signal that came before is taken, if nobody else has had it. `from_agent`: only that agent's will do.
        `timeout`: seconds; without one the gate's own, and never beyond what is left of `deadline`. Raises `CallFailed`
        with `needs_human` when the time is over, `promise_broken` when `from_agent` had promised the signal and has
        ended its work on the object without it. Do not wait again: say what you have, or let the error pass.
        """

        def begin(*, awaited: bool) -> Handle[Any]:
            return self._begin(self._wait_for(name, about, from_agent, timeout), returns, awaited=awaited)

        return Pending(begin, "ctx.wait_for")

    async def signal(self, name: str, *, about: str | None = None, value: Any = None, to: str | None = None) -> None:
        """Say that something has happened to an object (this unit's business key).

        All who wait for it now get `value`; if nobody does, it is kept for a while for the first who comes. `to`: only
        that agent hears it. Returns when the gate has it; raises `CallFailed` when it cannot take it.
        """
        params = self._signal(name, about, value, to)
        value_of(await exchange(self._port, params, self._unit.deadline), None)

    async def first(self, *awaited: Pending[T] | Handle[T]) -> T:
        """Wait until the first of several ends, and cancel the others; its value, or its error.

        Takes what `call` and `wait_for` return, and handles. Whether a handle was it, `handle.done` says. If a handle
        is done already, nothing is begun.
        """
        check_first(awaited, (Pending, Handle), "calls, waits and handles of this context")
        handles: list[Handle[T]] = []
        try:
            is_over = any(isinstance(one, Handle) and one.done for one in awaited)
            for one in awaited:
                if isinstance(one, Handle):
                    handles.append(one)
                elif is_over:
                    one.close()
                else:
                    handles.append(one.start())
            await wait_any(self._port, handles)
            return next(handle for handle in handles if handle.done).value()
        finally:
            for handle in handles:
                handle.cancel()

    def end(self) -> None:
        """The handler has ended: cancel what it has started and not waited for. For whoever runs handlers."""
        for handle in list(self._started):
            handle.cancel()

    def _begin(self, params: CallParams | WaitForParams, returns: Any, *, awaited: bool) -> Handle[Any]:
        if awaited:
            return Handle(self._port, params, self._call_deadline(params), returns)
        params = msgspec.structs.replace(params, awaited=False)
        handle = Handle[Any](self._port, params, self._call_deadline(params), returns)
        if not handle.done:
            self._started.add(handle)
            handle.answered.add_done_callback(lambda _answered: self._started.discard(handle))
        return handle

    def lock(
        self, *names: str, mode: LockMode = "exclusive", timeout: float | None = None, scope: LockScope = "message"
    ) -> Locking:
        """Hold these locks for a block: `async with ctx.lock("invoices", "stock") as held:`.

        All of them or none, in the one global order of their names, whatever order they are written in; a shared lock
        (`mode="shared"`) goes with other shared ones. Waits `timeout` seconds (the gate's 10 by default, never beyond
        the unit's deadline; both spread by 15 %), then raises `CallFailed` with code `deadline_exceeded`; with 0 it
        does not wait. A unit that holds locks asks for more only behind them in the order of names. Locks end with
        their unit; with `scope="session"`, taken by `held = await ctx.lock(…, scope="session").acquire()`, they end
        with `held.release()` or with this process. If `held.lost` shows that the lease is over, stop: your next call,
        or the end of the block, raises `lease_lost`.
        """
        return Locking(self._unit, self._port, *self._lock(names, mode, timeout, scope))

    @staticmethod
    def fake(answers: Answers | None = None, *, deadline: float = 30.0, **unit: Any) -> FakeContext:
        """A context for tests of your own handlers: calls are recorded, and answered as scripted.

        `answers` maps `(target, task_type)`, or just a task type, to a value, an `Outcome` (a degraded one, say), an
        exception to raise, or a function of the recorded call. A call without an answer fails with `no_route`. A wait
        for a signal is answered by the name of the signal, and without an answer ends with `needs_human`. `unit` sets
        what the context shows:
        `unit=`, `key=`, `caller=`, `business_key=`, `attempt=`, ...
        """
        return FakeContext(FakePort(answers or {}), deadline, unit)


class FakeContext(Context):
    """A `Context` without a gate: `calls` and `notes` are what the handler did with it."""

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
