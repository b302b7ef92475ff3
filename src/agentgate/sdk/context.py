"""What an async handler is given: who asks, how long there is, and a way to call others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, Unpack, overload

from agentgate.model.lock import LockMode, LockScope
from agentgate.sdk.calling import CallOptions, exchange, value_of
from agentgate.sdk.fake import Answers, FakePort, MadeCall, fake_unit
from agentgate.sdk.locks import Locking
from agentgate.sdk.unit import UnitView

T = TypeVar("T")


class Context(UnitView):
    """The second argument of an async handler."""

    @overload
    async def call(
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
    async def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...

    async def call(
        self,
        target: str,
        task_type: str,
        business_key: str = "",
        payload: Any = None,
        *,
        returns: Any = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call an agent by name, or `skill("reserve")`, and wait for its answer.

        A call not declared `effect="read"` needs a business key: from it the gate builds the idempotency key, so that
        a repeat is answered and not run again. `returns` is the type the answer is checked against and turned into.
        Raises `CallFailed`, whose `code`, `sent` and `advice` say what to do; `OutcomeUnknown` when nobody can tell
        whether the effect happened. Do not retry: the gate has done so as far as it helps.
        """
        params = self._call(target, task_type, business_key, payload, **options)
        return value_of(await exchange(self._port, params, self._call_deadline(params)), returns)

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

        `answers` maps `(target, task_type)`, or just a task type, to a value, an exception to raise, or a function of
        the recorded call. A call without an answer fails with `no_route`. `unit` sets what the context shows:
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
    def notes(self) -> list[str]:
        """The progress notes, in order."""
        return self._fake.notes

    def pass_time(self, seconds: float) -> None:
        """Let time go by: the deadline comes nearer."""
        self._fake.pass_time(seconds)
