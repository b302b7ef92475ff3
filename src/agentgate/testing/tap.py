"""What passes the gate's end of the wires: calls that came and were answered, units that were sent out and answered.

A tap belongs to one life of the gate. It reads the frames themselves, so that what it knows does not depend on what
the gate thinks it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from agentgate.model import Outcome, Problem
from agentgate.model.link import Answer, CallParams, Frame, InvokeParams, LockParams
from agentgate.testing.connection import AgentEnd, Direction

ROOT_DEADLINE_S: Final = 30.0  # of a call that names none

_frames: Final = msgspec.json.Decoder(list[Frame])
_call: Final = msgspec.json.Decoder(CallParams)
_lock: Final = msgspec.json.Decoder(LockParams)
_invoke: Final = msgspec.json.Decoder(InvokeParams)
_answer: Final = msgspec.json.Decoder(Answer)
_outcome: Final = msgspec.json.Decoder(Outcome)


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call that came and has not been answered."""

    id: str
    until: float
    end: AgentEnd
    params: CallParams


class Refused(NamedTuple):
    """A call, or a request for locks, that was told of a circle of waits."""

    id: str
    end: AgentEnd
    params: CallParams | LockParams


class Tap:
    """The traffic of one life of the gate."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.started_at = now()
        self.delivered: Counter[str] = Counter()  # how often the frame of a call came, by its id
        self.open_calls: dict[str, OpenCall] = {}
        self.overdue: list[tuple[str, float]] = []  # calls answered late, and by how much
        self.retries: Counter[str] = Counter()  # invokes beyond the first attempt, by agent
        self.successes: Counter[str] = Counter()  # units answered with a value, by agent
        self.refused: list[Refused] = []  # until somebody takes them out
        self._open_locks: dict[str, LockParams] = {}
        self._answered_units: set[str] = set()
        self._called_over: dict[str, AgentEnd] = {}  # the connection over which a call came or was answered last
        self._now = now

    def watch(self, direction: Direction, end: AgentEnd, data: bytes) -> None:
        """A frame passes."""
        frames = _frames.decode(data if data[:1] == b"[" else b"[" + data + b"]")
        for frame in frames:
            if direction == "up":
                self._came(end, frame)
            else:
                self._went(end, frame)

    def _came(self, end: AgentEnd, frame: Frame) -> None:
        call_id = str(frame.id)
        if frame.method == "call":
            self.delivered[call_id] += 1
            if self._called_over.get(call_id) is end:
                return  # a doubled frame, perhaps of a call that is answered already, or one that crossed its answer
            self._called_over[call_id] = end
            # A call that is sent again over a new connection goes on, or, if its answer got lost, begins anew with the
            # time it says it has.
            params = _call.decode(bytes(frame.params or b"{}"))
            limit_s = ROOT_DEADLINE_S if params.timeout_ms is None else params.timeout_ms / 1000
            until, before = self._now() + limit_s, self.open_calls.get(call_id)
            if before is not None:  # it goes on as it came first, whatever was lost on the way since
                until = max(until, before.until)
            self.open_calls[call_id] = OpenCall(call_id, until, end, params)
        elif frame.method == "lock":
            self._open_locks[call_id] = _lock.decode(bytes(frame.params or b"{}"))
        elif frame.method is None and frame.result and call_id not in self._answered_units:
            self._answered_units.add(call_id)
            if _answer.decode(bytes(frame.result)).error is None:
                self.successes[end.name] += 1

    def _went(self, end: AgentEnd, frame: Frame) -> None:
        if frame.method == "invoke":
            if _invoke.decode(bytes(frame.params or b"{}")).attempt > 1:
                self.retries[end.name] += 1
        elif frame.method is None and (call := self.open_calls.pop(str(frame.id), None)) is not None:
            self._called_over[call.id] = end  # over which it may cross its answer, sent again after a new welcome
            late_s = self._now() - call.until
            if late_s > 0:
                self.overdue.append((call.id, late_s))
            self._told(end, call.id, call.params, frame)
        elif frame.method is None and (params := self._open_locks.pop(str(frame.id), None)) is not None:
            self._told(end, str(frame.id), params, frame)

    def _told(self, end: AgentEnd, request_id: str, params: CallParams | LockParams, frame: Frame) -> None:
        if frame.result and _is_circle(_outcome.decode(bytes(frame.result)).error):
            self.refused.append(Refused(request_id, end, params))


def _is_circle(error: Problem | None) -> bool:
    """Whether a call was not waited for because of a circle of waits; a join gets the state of its run instead."""
    if error is None:
        return False
    return error.code == "deadlock" or (error.code == "in_progress" and "cycle of waits" in error.detail)
