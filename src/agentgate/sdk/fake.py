"""Contexts without a gate, for tests of handlers: calls are recorded and answered from a script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from agentgate.errors import CallFailed
from agentgate.model.link import Answer, CallParams, InvokeParams, LockGrant, LockParams
from agentgate.model.outcome import Outcome, Problem, failure
from agentgate.sdk.payload import BYTES_MAX, checked_json
from agentgate.sdk.port import Done, Lost
from agentgate.sdk.unit import Unit


class MadeCall(NamedTuple):
    """One call that a handler made."""

    target: str
    task_type: str
    business_key: str
    payload: Any
    params: CallParams


Scripted: TypeAlias = Any  # a value, an exception, or a function of the call
Answers: TypeAlias = Mapping[str | tuple[str, str], Scripted]


class FakePort:
    """A `LinkPort` that answers by itself, at once."""

    payload_bytes_max = BYTES_MAX

    def __init__(self, answers: Answers) -> None:
        self.calls: list[MadeCall] = []
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

    def start_call(self, params: CallParams, deadline: float | None, done: Done) -> str:
        """Record the call and answer it; the payload and the answer travel as JSON, as they would."""
        del deadline
        payload = msgspec.json.decode(msgspec.json.encode(params.payload))
        call = MadeCall(params.target, params.task_type, params.business_key, payload, params)
        self.calls.append(call)
        done(self._outcome(call))
        return str(len(self.calls))

    def cancel_call(self, call_id: str) -> None:
        """Every call has been answered already."""

    def start_lock(self, unit: str, params: LockParams, deadline: float, done: Done, lost: Lost) -> str:
        """Record the request and grant it."""
        del unit, deadline, lost
        self.locks.append(params.names)
        done(Outcome(value=LockGrant(epoch=len(self.locks), lease_ms=30_000)))
        return f"lock-{len(self.locks)}"

    def unlock(self, lock_id: str) -> None:
        """Nobody else wants it."""

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
        scripted = self._answers[named] if named in self._answers else self._answers[call.task_type]
        try:
            value = scripted(call) if callable(scripted) and not isinstance(scripted, type) else scripted
        except CallFailed as error:
            value = error
        if isinstance(value, CallFailed):
            return Outcome(error=_problem_of(value))
        if isinstance(value, BaseException):
            raise value
        return Outcome(value=msgspec.json.decode(checked_json(value, BYTES_MAX)))


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
