"""Calling objects of one event loop from other threads: in order, and with one wake-up for many calls.

Between the handlers' loop and the link's there is one bridge in each direction. What crosses it is run in the order of
posting, so a unit's progress notes leave before its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from agentgate.errors import LinkDown
from agentgate.model.link import Answer, DrainParams, InvokeParams, LockParams, StopKind, Welcome
from agentgate.model.outcome import Outcome, failure
from agentgate.sdk.birthplace import Birthplace
from agentgate.sdk.link import Link
from agentgate.sdk.port import Asked, Done, Lost, Receiver

log: Final = logging.getLogger("agentgate.link")


class Bridge:
    """Runs what is posted, from any thread, on one loop. Bounded by what its users bound: units, open calls, notes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._birthplace = Birthplace()
        self._lock = threading.Lock()
        self._posted: deque[Callable[[], object]] = deque()
        self._is_awake = False

    def post(self, call: Callable[[], object]) -> None:
        """Run this on the loop, after everything posted before; raises `LinkDown` when it cannot be."""
        self._birthplace.check()  # before the lock, which a fork may have left taken for ever
        with self._lock:
            self._posted.append(call)
            if self._is_awake:
                return
            self._is_awake = True
        try:
            self._loop.call_soon_threadsafe(self._run)
        except RuntimeError as error:  # the loop is closed
            raise LinkDown("the link of this process has ended") from error

    def _run(self) -> None:
        with self._lock:
            posted, self._posted = self._posted, deque()
            self._is_awake = False
        for call in posted:
            try:
                call()
            except Exception:
                log.exception("a message between threads failed")


class BridgedPort:
    """A `LinkPort` for other threads than the link's. `home`: where `done` is run; without it, on the link's loop."""

    def __init__(self, link: Link, there: Bridge, now: Callable[[], float], *, home: Bridge | None = None) -> None:
        self._link = link
        self._there = there
        self._home = home
        self.now = now
        self._lock = threading.Lock()
        self._notes: dict[str, str] = {}  # the latest of each unit that has not crossed yet
        self._open: set[str] = set()

    @property
    def payload_bytes_max(self) -> int:
        """As the gate said last."""
        return self._link.payload_bytes_max

    def require_process(self) -> None:
        """Raise `LinkDown` in a forked process."""
        self._link.require_process()

    def start_call(self, params: Asked, deadline: float | None, done: Done) -> str:
        """Send a call; `done` hears its outcome exactly once."""
        call_id = self._link.next_call_id()
        if self._has_room(call_id, done):
            settle = partial(self._settle, call_id, done)
            self._there.post(partial(self._link.open_call, call_id, params, deadline, settle))
        return call_id

    def cancel_call(self, call_id: str) -> None:
        """Nobody waits for this call any more."""
        self._there.post(partial(self._link.cancel_call, call_id))

    def start_lock(self, unit: str, params: LockParams, deadline: float, done: Done, lost: Lost) -> str:
        """Ask for locks; `done` hears the outcome exactly once, `lost` of a loss."""
        lock_id = self._link.next_call_id()
        if self._has_room(lock_id, done):
            settle, lose = partial(self._settle, lock_id, done), partial(self._at_home, lost)
            enter = self._link.locks.granted_to(lock_id, unit, params, lose, settle)
            self._there.post(partial(self._link.open_call, lock_id, params, deadline, enter))
        return lock_id

    def unlock(self, lock_id: str) -> None:
        """Give back what this request holds, or wait for it no longer."""
        self._there.post(partial(self._link.unlock, lock_id))

    def begin_wait(self, any_of: Sequence[str]) -> str:
        """A unit stands still until the first of these ends."""
        wait_id = self._link.next_call_id()
        self._there.post(partial(self._link.waits.begin, wait_id, any_of))
        return wait_id

    def end_wait(self, wait_id: str, *, tell: bool) -> None:
        """It goes on."""
        with contextlib.suppress(LinkDown):  # nobody is left to be told
            self._there.post(partial(self._link.waits.end, wait_id, tell=tell))

    def progress(self, unit: str, note: str) -> None:
        """A later note takes the place of one that has not crossed yet."""
        with self._lock:
            waits = unit in self._notes
            self._notes[unit] = note
        if not waits:
            self._there.post(partial(self._send_note, unit))

    def answer(self, unit: str, answer: Answer) -> None:
        """The handler of this unit ended."""
        self._there.post(partial(self._link.answer, unit, answer))

    def drain(self, reason: str) -> None:
        """Take nothing new; the link ends by itself when nothing is in hand."""
        self._there.post(partial(self._link.drain, reason))

    def _has_room(self, call_id: str, done: Done) -> bool:
        if len(self._open) >= self._link.calls_max:
            done(failure("overloaded", detail=f"{self._link.calls_max} calls of this process are open"))
            return False
        self._open.add(call_id)
        return True

    def _settle(self, call_id: str, done: Done, outcome: Outcome) -> None:
        self._open.discard(call_id)
        self._at_home(partial(done, outcome))

    def _at_home(self, call: Callable[[], None]) -> None:
        if self._home is None:
            call()
        else:
            with contextlib.suppress(LinkDown):  # nobody is at home any more
                self._home.post(call)

    def _send_note(self, unit: str) -> None:
        with self._lock:
            note = self._notes.pop(unit)
        self._link.progress(unit, note)


class BridgedReceiver:
    """A `Receiver` on another loop than the link's. Its lag is how long the other loop takes to answer a knock."""

    def __init__(self, receiver: Receiver, there: Bridge, now: Callable[[], float]) -> None:
        self._receiver = receiver
        self._there = there
        self._now = now
        self._knocked_at: float | None = None
        self._lag_s = 0.0

    def start(self, unit: str, params: InvokeParams, deadline: float) -> None:
        """Run the handler of this unit."""
        self._post(partial(self._receiver.start, unit, params, deadline))

    def stop(self, unit: str, kind: StopKind, reason: str) -> None:
        """Tell a running unit to stop."""
        self._post(partial(self._receiver.stop, unit, kind, reason))

    def drain(self, params: DrainParams) -> None:
        """The gate asks this process to finish and leave."""
        self._post(partial(self._receiver.drain, params))

    def link_up(self, welcome: Welcome) -> None:
        """The gate has welcomed this process."""
        self._post(partial(self._receiver.link_up, welcome))

    def link_down(self, error: Exception) -> None:
        """The link is lost."""
        self._post(partial(self._receiver.link_down, error))

    def runs(self, unit: str) -> bool:
        """Asked there at once: the loop may be blocked, and looking into a map needs no turn of it."""
        return self._receiver.runs(unit)

    def lag_ms(self) -> float:
        """The time of the last knock, or of the one that has not been answered yet."""
        waiting_s = 0.0 if self._knocked_at is None else self._now() - self._knocked_at
        if self._knocked_at is None:
            self._knocked_at = self._now()
            self._post(self._answer_knock)
        return max(self._lag_s, waiting_s) * 1000

    def _post(self, call: Callable[[], object]) -> None:
        with contextlib.suppress(LinkDown):  # the other loop is closed: the process is leaving
            self._there.post(call)

    def _answer_knock(self) -> None:
        if self._knocked_at is not None:
            self._lag_s, self._knocked_at = self._now() - self._knocked_at, None
