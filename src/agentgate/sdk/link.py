"""The link: one process's connection to its gate, as a plain asyncio object (docs/reference/link.md).

`run()` connects, says hello, and keeps the session up until `close()` or until the gate refuses for good. Everything
that has to survive a lost connection is kept outside of it: units and answers in the inbox, calls in `_calls`. After
every welcome the pending calls are sent again under their ids and the answers that are still owed follow: resumption,
not retry. Nothing here is retried otherwise.

A session is three tasks. The reader handles messages in order; the writer takes whatever is in the outbox at once, so
that messages of one turn of the event loop leave together; the beater sends signs of life and ends a silent session.

Connection, clock (the running loop's) and chance are handed in, and there are no threads: `sdk.thread` adds one, a
simulation does without. All methods belong to the loop that runs `run()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from agentgate.errors import WireError
from agentgate.model.link import (
    AckParams,
    Answer,
    BeatParams,
    DrainParams,
    Frame,
    InvokeParams,
    LockLostParams,
    LockParams,
    ProbeAnswer,
    ProbeParams,
    ProgressParams,
    StopParams,
    UnlockParams,
    Welcome,
)
from agentgate.sdk import wire
from agentgate.sdk.birthplace import Birthplace
from agentgate.sdk.calls import OpenCalls
from agentgate.sdk.connection import Connect, Connection, LinkClosed, close_quietly
from agentgate.sdk.greeting import Identity, LinkRefused, NotNow, greet
from agentgate.sdk.held_locks import HeldLocks
from agentgate.sdk.inbox import Inbox, Tell, units_max
from agentgate.sdk.link_options import BEAT_S_MIN, STANDSTILL_S, LinkOptions
from agentgate.sdk.outbox import Outbox
from agentgate.sdk.payload import BYTES_MAX
from agentgate.sdk.port import Asked, Done, Lost, Receiver
from agentgate.sdk.reconnect import Reconnect
from agentgate.sdk.waits import OpenWaits

__all__ = ["Link", "LinkOptions"]

log: Final = logging.getLogger("agentgate.link")


class Link:
    """One process's connection to its gate. `receiver` gets what the gate asks for; set it before `run()`."""

    def __init__(
        self,
        connect: Connect,
        identity: Identity,
        *,
        draw: Callable[[], float],
        receiver: Receiver | None = None,
        options: LinkOptions | None = None,
    ) -> None:
        self.receiver = receiver
        self.identity = identity
        self.payload_bytes_max = BYTES_MAX
        self.locks = HeldLocks()
        self._options = options or LinkOptions()
        self.calls_max = self._options.calls.open_max
        self._connect = connect
        self._reconnect = Reconnect(self._options.reconnect, draw)
        skills = identity.card.skills if identity.card is not None else ()
        self._repeatable = {skill.task_type for skill in skills if skill.repeatable}
        self._inbox = Inbox(units_max=units_max(identity.card.concurrency if identity.card is not None else 1))
        self._outbox = Outbox(self._options.batch_bytes_max)
        self._calls = OpenCalls(identity.instance, self._options.calls, self._notify)
        self.waits = OpenWaits(self._notify)
        self._birthplace = Birthplace()
        self._clock: Callable[[], float] | None = None  # the loop's, once there is one
        self._is_up = False
        self._wake: asyncio.Future[None] | None = None
        self._heard_at = 0.0
        self._drain_reason: str | None = None
        self._closing = asyncio.Event()
        self._handlers: dict[str, Callable[[Frame], None]] = {
            "invoke": self._on_invoke,
            "stop": self._on_stop,
            "ack": self._on_ack,
            "lock_lost": self._on_lock_lost,
            "drain": self._on_drain,
            "probe": self._on_probe,
        }

    # What handlers and clients use (`LinkPort`).

    def now(self) -> float:
        """The running loop's time."""
        return self._clock() if self._clock is not None else asyncio.get_running_loop().time()

    def require_process(self) -> None:
        """Raise `LinkDown` in a forked process."""
        self._birthplace.check()

    def start_call(self, params: Asked, deadline: float | None, done: Done) -> str:
        """Send a call; `done` hears its outcome exactly once."""
        call_id = self.next_call_id()
        self.open_call(call_id, params, deadline, done)
        return call_id

    def next_call_id(self) -> str:
        """A new id; may be asked for from any thread."""
        return self._calls.next_id()

    def open_call(self, call_id: str, params: Asked, deadline: float | None, done: Done) -> None:
        """As `start_call`, under an id that was made before."""
        self.require_process()
        call = self._calls.open(call_id, params, deadline, done)
        if call is not None and self._is_up:
            self._put(call.message(self.now()))

    def cancel_call(self, call_id: str) -> None:
        """Nobody waits for this call any more."""
        self._calls.cancel(call_id)

    def start_lock(self, unit: str, params: LockParams, deadline: float, done: Done, lost: Lost) -> str:
        """Ask for locks; `done` hears the outcome exactly once, `lost` when what was granted is lost."""
        lock_id = self.next_call_id()
        self.open_call(lock_id, params, deadline, self.locks.granted_to(lock_id, unit, params, lost, done))
        return lock_id

    def unlock(self, lock_id: str) -> None:
        """Give back what this request holds, or wait for it no longer."""
        if self.locks.drop(lock_id):
            self._notify("unlock", UnlockParams(id=lock_id))
        else:
            self._calls.cancel(lock_id)

    def begin_wait(self, any_of: Sequence[str]) -> str:
        """A unit stands still until the first of these ends."""
        wait_id = self.next_call_id()
        self.waits.begin(wait_id, any_of)
        return wait_id

    def end_wait(self, wait_id: str, *, tell: bool) -> None:
        """It goes on."""
        self.waits.end(wait_id, tell=tell)

    def progress(self, unit: str, note: str) -> None:
        """Send a note on how far a unit has come; lost with the connection, as the next one will say more."""
        if self._is_up:
            self._outbox.put_note(unit, wire.notification("progress", ProgressParams(unit=unit, note=note)))
            self._flush()

    def answer(self, unit: str, answer: Answer) -> None:
        """The handler of this unit ended."""
        self.locks.end_unit(unit)
        for answered in self._inbox.finish(unit, answer):
            self._send_answer(answered)
        self._leave_when_idle()

    def drain(self, reason: str) -> None:
        """Take nothing new; the link ends by itself when nothing is in hand."""
        if self._drain_reason is None:
            self._drain_reason = reason
            self._inbox.draining = True
            self._send_drain()
            self._leave_when_idle()

    def close(self) -> None:
        """End the link, after sending what is in the outbox."""
        self._closing.set()
        self._flush()

    # The life of the link.

    @property
    def in_hand(self) -> tuple[int, int]:
        """Handlers that run, and answers that no `ack` has covered."""
        return self._inbox.running, self._inbox.kept

    async def run(self) -> None:
        """Keep the link up until it is closed; raises `LinkDown` when the gate refuses for good."""
        self._clock = asyncio.get_running_loop().time
        code, detail = "cancelled", "the link was closed"
        try:
            while not self._closing.is_set():
                wait_s = await self._session()
                await self._pause(wait_s)
        except LinkRefused as refusal:
            code, detail = refusal.code, str(refusal)
            raise
        finally:
            self._calls.end(code, detail)

    async def _session(self) -> float:
        """One connection from its making to its end; returns how long to wait before the next."""
        connection: Connection | None = None
        try:
            async with asyncio.timeout(self._options.greet_s):
                connection = await self._connect()
                units, calls, locks = self._inbox.reports(self.now()), self._calls.ids(), self.locks.reports()
                welcome, rest = await greet(connection, self.identity, units, calls, locks)
            end = await self._stay(connection, welcome, rest)
            wait_s = self._reconnect.after_loss_s()
        except (OSError, WireError) as error:
            end = error
            named_s = error.retry_after_s if isinstance(error, NotNow) else None
            wait_s = self._reconnect.after_failure_s(self.now(), named_s)
        finally:
            if connection is not None:
                await close_quietly(connection, self._options.close_s)
        if self.receiver is not None and not self._closing.is_set():
            self.receiver.link_down(end)
        return wait_s

    async def _stay(self, connection: Connection, welcome: Welcome, rest: list[Frame]) -> Exception:
        """The session itself; returns why it ended."""
        end: Exception = LinkClosed("")
        self._enter(welcome)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read(connection, rest))
                group.create_task(self._write(connection))
                group.create_task(self._beat(welcome.beat_ms / 1000, welcome.silent_ms / 1000))
        except* (OSError, WireError) as ends:
            end = ends.exceptions[0]
        finally:
            self._is_up = False
            self._outbox.clear()
            self._calls.link_lost(self.now())
        return end

    def _enter(self, welcome: Welcome) -> None:
        """Resume: everything that the lost connection may have swallowed is sent again, in its order."""
        now = self.now()
        self._is_up = True
        self._heard_at = now
        self._reconnect.worked(now)
        self.payload_bytes_max = welcome.payload_bytes_max
        self._inbox.welcomed(now)
        self._inbox.ack(welcome.acked)
        for unit in welcome.unknown_units:
            self._tell(self._inbox.forget(unit), "the gate takes no answer from this unit any more")
        self.locks.lose(welcome.lost_locks)
        for unit, _ in self._inbox.to_send(now, self._options.resend_s):
            self._send_answer(unit)
        for call in self._calls.link_up():
            self._put(call.message(now))
        self.waits.link_up()
        if self._drain_reason is not None:
            self._send_drain()
        if self.receiver is not None:
            self.receiver.link_up(welcome)
        self._leave_when_idle()

    async def _pause(self, wait_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._closing.wait()

    # The three tasks of a session.

    async def _read(self, connection: Connection, rest: list[Frame]) -> None:
        for frame in rest:
            self._handle(frame)
        while True:
            data = await connection.recv()
            self._heard_at = self.now()
            for frame in wire.read(data):
                self._handle(frame)

    async def _write(self, connection: Connection) -> None:
        while True:
            while self._outbox:
                await connection.send(self._outbox.take())
            if self._closing.is_set():
                raise LinkClosed("closed by this process")
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake

    async def _beat(self, beat_s: float, silent_s: float) -> None:
        due_at = self.now()
        while True:
            now = self.now()
            # A process that stood still itself has not heard anything, and has to read first what came meanwhile.
            if now >= self._heard_at + silent_s and now <= due_at + STANDSTILL_S:
                raise LinkClosed(f"nothing was heard from the gate for {silent_s:g} s")
            lag_ms = self.receiver.lag_ms() if self.receiver is not None else 0.0
            self._put(wire.notification("beat", BeatParams(units=self._inbox.running, lag_ms=lag_ms)))
            for unit, _ in self._inbox.to_send(now, self._options.resend_s):
                self._send_answer(unit)
            wait_s = max(BEAT_S_MIN, min(beat_s, self._heard_at + silent_s - now))
            due_at = now + wait_s
            await asyncio.sleep(wait_s)

    # Messages.

    def _handle(self, frame: Frame) -> None:
        if frame.method is None:
            self._handle_response(frame)
            return
        handle = self._handlers.get(frame.method)
        try:
            if handle is not None:
                handle(frame)
            elif frame.id is not None:
                self._put(wire.breach(frame.id, wire.NO_SUCH_METHOD, f"no such method: {frame.method}"))
        except WireError as error:
            log.warning("the gate sent a wrong `%s`: %s", frame.method, error)
            if frame.id is not None:
                self._put(wire.breach(frame.id, wire.INVALID_PARAMS, error.detail))

    def _handle_response(self, frame: Frame) -> None:
        self._calls.settle(str(frame.id), wire.outcome(frame))

    def _on_invoke(self, frame: Frame) -> None:
        params = wire.body(frame.params, InvokeParams)
        unit = str(frame.id)
        if self.receiver is None or self.identity.card is None:
            raise WireError("this process has no handlers")
        deadline = self.now() + params.remaining_ms / 1000
        repeatable = params.task_type in self._repeatable
        receipt = self._inbox.receive(unit, params, deadline=deadline, repeatable=repeatable)
        if receipt == "start":
            self.receiver.start(unit, params, deadline)
        elif receipt != "known":
            self._put(wire.response(unit, receipt))
            self._inbox.sent(unit, self.now())

    def _on_stop(self, frame: Frame) -> None:
        params = wire.body(frame.params, StopParams)
        told = self._inbox.stop(params.unit, params.kind)
        if isinstance(told, Answer):
            self._put(wire.response(params.unit, told))
            self._inbox.sent(params.unit, self.now())
        else:
            self._tell(told, params.reason)

    def _on_ack(self, frame: Frame) -> None:
        self._inbox.ack(wire.body(frame.params, AckParams).seq)
        self._leave_when_idle()

    def _on_lock_lost(self, frame: Frame) -> None:
        self.locks.lose([wire.body(frame.params, LockLostParams).id])

    def _on_drain(self, frame: Frame) -> None:
        if self.receiver is not None:
            self.receiver.drain(wire.body(frame.params, DrainParams))

    def _on_probe(self, frame: Frame) -> None:
        if (there := self.receiver) is not None:  # not asked on its own loop, which may be what stands still
            units = {unit: self._inbox.health(unit, there.runs) for unit in wire.body(frame.params, ProbeParams).units}
            self._put(wire.response(str(frame.id), ProbeAnswer(units=units, lag_ms=there.lag_ms())))

    # Parts.

    def _tell(self, told: Tell | None, reason: str) -> None:
        if told is not None and self.receiver is not None:
            self.receiver.stop(told.unit, told.kind, reason)

    def _send_answer(self, unit: str) -> None:
        answer = self._inbox.answer_of(unit)
        if answer is not None and self._is_up:
            self._put(wire.response(unit, answer))
            self._inbox.sent(unit, self.now())

    def _send_drain(self) -> None:
        self._notify("drain", DrainParams(reason=self._drain_reason or ""))

    def _leave_when_idle(self) -> None:
        if self._drain_reason is not None and self._inbox.idle:
            self.close()

    def _notify(self, method: str, params: msgspec.Struct) -> None:
        """Say something that need not be said any more once the connection is lost."""
        if self._is_up:
            self._put(wire.notification(method, params))

    def _put(self, message: bytes) -> None:
        self._outbox.put(message)
        self._flush()

    def _flush(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
