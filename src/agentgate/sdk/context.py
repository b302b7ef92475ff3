"""What an async handler is given: who asks, how long there is, and a way to call others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, Unpack, overload

from agentgate.sdk.calling import CallOptions, exchange, value_of
from agentgate.sdk.fake import Answers, FakePort, MadeCall, fake_unit
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
    def notes(self) -> list[str]:
        """The progress notes, in order."""
        return self._fake.notes

    def pass_time(self, seconds: float) -> None:
        """Let time go by: the deadline comes nearer."""
        self._fake.pass_time(seconds)
