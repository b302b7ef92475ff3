"""Calls of this process that wait for their outcome, and locks, signals and waits for signals, which are sent alike.

A call is known by its id, from `open` to exactly one outcome: the gate's, `cancelled`, or, when the gate says nothing,
`deadline_exceeded` a moment after its deadline. A call without a deadline of its own is the gate's to end; here it only
ends when there has been no link for a while, so that nothing hangs without a word.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from agentgate.model.link import CallParams, CancelParams, LockParams, SignalParams, WaitForParams
from agentgate.model.outcome import Outcome, failure
from agentgate.sdk import wire
from agentgate.sdk.port import Asked, Done

log: Final = logging.getLogger("agentgate.agent")

METHODS: Final[dict[type, str]] = {
    CallParams: "call",
    LockParams: "lock",
    WaitForParams: "wait_for",
    SignalParams: "signal",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CallLimits:
    """Bounds of what waits."""

    margin_s: float = 0.25  # after a call's deadline, so that the gate's word normally comes first
    down_patience_s: float = 30.0  # a call without a deadline outlives a lost link this long: the gate's root deadline
    open_max: int = 10_000  # beyond it a caller sends without waiting


class OpenCall:
    """One call, or whatever else is asked for in the same way."""

    __slots__ = ("deadline", "done", "id", "params", "sendings", "started_at", "timer")

    def __init__(self, call_id: str, params: Asked, deadline: float | None, done: Done, now: float) -> None:
        self.id = call_id
        self.params = params
        self.deadline = deadline
        self.done = done
        self.started_at = now
        self.sendings = 0
        self.timer: asyncio.TimerHandle | None = None

    @property
    def was_sent(self) -> bool:
        """Whether the gate may have seen it."""
        return self.sendings > 0

    def message(self, now: float) -> bytes:
        """The call as it is sent now, with the time that is left now."""
        params = self.params
        age_ms = round((now - self.started_at) * 1000)
        if age_ms > 0 and not isinstance(params, SignalParams):
            left_ms = None if params.timeout_ms is None else max(1, params.timeout_ms - age_ms)
            params = msgspec.structs.replace(params, timeout_ms=left_ms, age_ms=age_ms)
        self.sendings += 1
        return wire.request(self.id, METHODS[type(params)], params)


class OpenCalls:
    """All calls of a link. `notify` tells the gate, if there is a connection."""

    def __init__(self, prefix: str, limits: CallLimits, notify: Callable[[str, msgspec.Struct], None]) -> None:
        self._prefix = prefix
        self._limits = limits
        self._notify = notify
        self._numbers = itertools.count(1)
        self._calls: dict[str, OpenCall] = {}
        self._down_since: float | None = 0.0
        self._end: tuple[str, str] | None = None  # code and detail, once the link is over

    def next_id(self) -> str:
        """An id that no other call in the world has; may be asked for from any thread."""
        return f"{self._prefix}.{next(self._numbers)}"

    def open(self, call_id: str, params: Asked, deadline: float | None, done: Done) -> OpenCall | None:
        """Enter a call; None when it has its outcome already."""
        if self._end is not None:
            code, detail = self._end
            done(failure(code, detail=detail))
            return None
        if len(self._calls) >= self._limits.open_max:
            done(failure("overloaded", detail=f"{self._limits.open_max} calls of this process are open"))
            return None
        loop = asyncio.get_running_loop()
        call = self._calls[call_id] = OpenCall(call_id, params, deadline, done, loop.time())
        self._watch(call)
        return call

    def settle(self, call_id: str, outcome: Outcome) -> None:
        """The call has its outcome; a second one, or one for a call that was cancelled, is dropped."""
        call = self._calls.pop(call_id, None)
        if call is not None:
            if call.timer is not None:
                call.timer.cancel()
            if outcome.degraded and isinstance(call.params, CallParams):
                log.warning("%s: answered by its degraded handler; its effect may still happen", _shown(call.params))
            call.done(_honest(outcome) if call.sendings > 1 else outcome)

    def cancel(self, call_id: str) -> None:
        """Its caller has left."""
        call = self._calls.get(call_id)
        if call is not None:
            self._notify("cancel", CancelParams(id=call_id))
            self.settle(call_id, failure("cancelled", sent=call.was_sent))

    def link_up(self) -> list[OpenCall]:
        """All calls, to be sent (again)."""
        self._down_since = None
        return list(self._calls.values())

    def link_lost(self, now: float) -> None:
        """Nothing can be sent until the next `link_up`."""
        self._down_since = now

    def end(self, code: str, detail: str) -> None:
        """The link is over, for the calls that are open and those to come."""
        self._end = (code, detail)
        for call in list(self._calls.values()):
            self.settle(call.id, failure(code, sent=call.was_sent, detail=detail))

    def ids(self) -> tuple[str, ...]:
        """The calls that are waited for, oldest first."""
        return tuple(self._calls)

    def _watch(self, call: OpenCall) -> None:
        loop = asyncio.get_running_loop()
        if call.deadline is not None:
            call.timer = loop.call_at(call.deadline + self._limits.margin_s, self._overdue, call)
        else:
            call.timer = loop.call_later(self._limits.down_patience_s / 3, self._look, call)

    def _look(self, call: OpenCall) -> None:
        """A call without a deadline: is there still a link?"""
        now = asyncio.get_running_loop().time()
        down_since = None if self._down_since is None else max(self._down_since, call.started_at)
        if down_since is not None and now - down_since >= self._limits.down_patience_s:
            self._overdue(call)
        else:
            self._watch(call)

    def _overdue(self, call: OpenCall) -> None:
        if isinstance(call.params, LockParams):
            self._notify("cancel", CancelParams(id=call.id))  # a grant that is on its way would be held by nobody
        detail = "there is no link to the gate" if self._down_since is not None else "the gate did not answer in time"
        self.settle(call.id, failure("deadline_exceeded", sent=call.was_sent, detail=detail))


def _shown(params: CallParams) -> str:
    return f"{params.target}.{params.task_type}({params.business_key})"


def _honest(outcome: Outcome) -> Outcome:
    """The outcome of a call that was sent again: it speaks of the last sending, and an earlier one may have acted."""
    error = outcome.error
    if error is None or error.sent:
        return outcome
    return msgspec.structs.replace(outcome, error=msgspec.structs.replace(error, sent=True))
