"""Contexts without a gate, for tests of handlers: calls are recorded and answered from a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from agentgate.errors import CallFailed
from agentgate.model.link import Answer, CallParams, InvokeParams, LockGrant, LockParams, SignalParams, WaitForParams
from agentgate.model.outcome import Outcome, Problem, failure
from agentgate.sdk.payload import BYTES_MAX, checked_json
from agentgate.sdk.port import Asked, Done, Lost
from agentgate.sdk.unit import Unit


class MadeCall(NamedTuple):
    """One call that a handler made."""

    target: str
    task_type: str
    business_key: str
    payload: Any
    params: CallParams


class MadeSignal(NamedTuple):
    """One signal that a handler sent."""

    name: str
    about: str
    value: Any
    to: str


Scripted: TypeAlias = Any  # a value, an exception, or a function of the call
Answers: TypeAlias = Mapping[str | tuple[str, str], Scripted]


class FakePort:
    """A `LinkPort` that answers by itself, at once."""

    payload_bytes_max = BYTES_MAX

    def __init__(self, answers: Answers) -> None:
        self.calls: list[MadeCall] = []
        self.signals: list[MadeSignal] = []
        self.notes: list[str] = []
        self.locks: list[tuple[str, ...]] = []
        self._answers = answers
        self._now = 0.0

    def now(self) -> float:
        """Stands still until `pass_time`."""
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Let time go by."""
        self._now += seconds

    def require_process(self) -> None:
        """Any process will do."""

    def start_call(self, params: Asked, deadline: float | None, done: Done) -> str:
        """Record what is asked for and answer it; payload, value and answer travel as JSON, as they would."""
        del deadline
        if isinstance(params, WaitForParams):
            done(self._news(params))
            return params.name
        if isinstance(params, SignalParams):
            self.signals.append(MadeSignal(params.name, params.about, _travelled(params.value), params.to))
            done(Outcome())
            return params.name
        if isinstance(params, LockParams):
            self.locks.append(params.names)
            done(Outcome(value=LockGrant(epoch=len(self.locks), lease_ms=30_000)))
            return f"lock-{len(self.locks)}"
        payload = _travelled(params.payload)
        call = MadeCall(params.target, params.task_type, params.business_key, payload, params)
        self.calls.append(call)
        done(self._outcome(call))
        return str(len(self.calls))

    def cancel_call(self, call_id: str) -> None:
        """Every call has been answered already."""

    def start_lock(self, unit: str, params: LockParams, deadline: float, done: Done, lost: Lost) -> str:
        """Record the request and grant it."""
        del unit, lost
        return self.start_call(params, deadline, done)

    def unlock(self, lock_id: str) -> None:
        """Nobody else wants it."""

    def begin_wait(self, any_of: Sequence[str]) -> str:
        """Nobody ever waits here."""
        return ",".join(any_of)

    def end_wait(self, wait_id: str, *, tell: bool) -> None:
        """Nobody has waited."""

    def progress(self, unit: str, note: str) -> None:
        """Record the note."""
        del unit
        self.notes.append(note)

    def answer(self, unit: str, answer: Answer) -> None:
        """Nobody waits for it."""

    def drain(self, reason: str) -> None:
        """There is nothing to leave."""

    def _outcome(self, call: MadeCall) -> Outcome:
        named = (call.target, call.task_type)
        if named not in self._answers and call.task_type not in self._answers:
            return failure("no_route", detail=f"the fake context has no answer for {named}")
        return _played(self._answers[named] if named in self._answers else self._answers[call.task_type], call)

    def _news(self, wait: WaitForParams) -> Outcome:
        if wait.name not in self._answers:
            return failure("needs_human", sent=True, detail=f"the fake context has no signal `{wait.name}`")
        return _played(self._answers[wait.name], wait)


def _played(scripted: Scripted, asked: MadeCall | WaitForParams) -> Outcome:
    """What the script says to this."""
    try:
        value = scripted(asked) if callable(scripted) and not isinstance(scripted, type) else scripted
    except CallFailed as error:
        value = error
    if isinstance(value, CallFailed):
        return Outcome(error=_problem_of(value))
    if isinstance(value, BaseException):
        raise value
    outcome = value if isinstance(value, Outcome) else Outcome(value=value)
    return msgspec.structs.replace(outcome, value=msgspec.json.decode(checked_json(outcome.value, BYTES_MAX)))


def _travelled(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def fake_unit(deadline: float, shown: Mapping[str, Any]) -> Unit:
    """A unit for a fake context; `shown` overrides what it says about itself."""
    params: dict[str, Any] = {"task_type": "test", "caller": "test", "key": "test:test::run", "token": "fake", **shown}
    unit_id = params.pop("unit", "unit-1")
    chain = params.pop("chain", "0" * 31 + "1")
    return Unit(unit_id, InvokeParams(traceparent=f"00-{chain}-{'0' * 15}1-01", **params), deadline)


def _problem_of(error: CallFailed) -> Problem:
    return Problem(
        code=error.code,
        fault=error.fault,
        sent=error.sent,
        retry=error.retry,
        retry_after_ms=error.retry_after_ms,
        advice=error.advice,
        detail=error.detail,
    )
