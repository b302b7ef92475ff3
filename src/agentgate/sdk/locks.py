"""Locks as a handler uses them: `async with ctx.lock("invoices", "stock") as held`, and the blocking form of it.

The gate decides who has which lock, and for how long. Here a request waits for its answer, and what was granted is
given back at the end of the block. A lock that is lost meanwhile (its lease ended) shows at `held.lost`; the unit's
next call, or the end of the block, raises `CallFailed` with code `lease_lost`, for others may have changed what it
protects.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import NoReturn, Self

import msgspec

from agentgate.errors import CallFailed
from agentgate.model.link import LockGrant, LockParams
from agentgate.model.lock import LockMode
from agentgate.model.outcome import Outcome, problem
from agentgate.sdk.calling import call_failed, settle
from agentgate.sdk.port import Done, LinkPort
from agentgate.sdk.unit import Unit


class Held:
    """Locks that are held: `epoch` is higher than that of every earlier holder, `lost` says that they are others' now.

    Pass the epoch on to what you write to: a store that refuses a lower one than it has seen is safe from whoever goes
    on without knowing that its locks are lost.
    """

    def __init__(self, unit: Unit, port: LinkPort, params: LockParams) -> None:
        self._unit = unit
        self._port = port
        self.names: tuple[str, ...] = params.names
        self.mode: LockMode = params.mode
        self.id = ""
        self.epoch = 0
        self.lost = False

    def __del__(self) -> None:
        """A request that was made and dropped has locked nothing, which nobody would notice."""
        if not self.id:
            warnings.warn(f"ctx.lock was neither entered nor acquired: {self._shown} is not held", RuntimeWarning, 2)

    def release(self) -> None:
        """Give them back, from any thread; the end of the block does. Doing so twice changes nothing."""
        self._port.unlock(self.id)

    def begin(self, deadline: float, params: LockParams, done: Done) -> str:
        """Ask for them; returns the id of the request."""
        self.id = self._port.start_lock(self._unit.id, params, deadline, done, self._lose)
        return self.id

    def granted(self, outcome: Outcome) -> Self:
        """What was asked for, if it was granted; raises `CallFailed` otherwise."""
        if outcome.error is not None:
            raise call_failed(outcome.error)
        self.epoch = msgspec.convert(outcome.value, LockGrant).epoch
        return self

    def end(self, error: BaseException | None) -> None:
        """The block is over: give back, and say so if there was nothing to give back any more."""
        self.release()
        if self.lost and error is None:
            raise self.loss()

    def loss(self) -> CallFailed:
        """The error that says that they are lost."""
        return call_failed(problem("lease_lost", detail=f"unit {self._unit.id} has lost {self._shown}"))

    @property
    def _shown(self) -> str:
        return "the lock " + ", ".join(map(repr, self.names))

    def _lose(self) -> None:
        self.lost = True
        self._unit.lost = self._shown


class Locking:
    """A request for locks: `async with` it, or `await request.acquire()` and `release()` what that gives."""

    def __init__(self, unit: Unit, port: LinkPort, params: LockParams, deadline: float) -> None:
        self._params = params
        self._deadline = deadline
        self._held = Held(unit, port, params)

    async def acquire(self) -> Held:
        """Wait until all of them are held; raises `CallFailed` (`deadline_exceeded` when others had them too long)."""
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._held.begin(self._deadline, self._params, partial(settle, answered))
        try:
            return self._held.granted(await answered)
        except asyncio.CancelledError:
            self._held.release()
            raise

    def __enter__(self) -> NoReturn:
        """A handler that is async must not block."""
        raise TypeError("this handler is async: use `async with ctx.lock(...)`")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Python looks for it before it enters."""

    async def __aenter__(self) -> Held:
        return await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.end(error)


# Starts a request, given who hears its outcome, and waits for that; given how to give the request up.
Wait = Callable[[Callable[[Done], str], Callable[[str], None]], Outcome]


class SyncLocking:
    """A request for locks, blocking: `with` it, or `acquire()` and `release()` what that gives."""

    def __init__(self, unit: Unit, port: LinkPort, params: LockParams, deadline: float, wait: Wait) -> None:
        self._unit = unit
        self._port = port
        self._params = params
        self._deadline = deadline
        self._wait = wait
        self._held = Held(unit, port, params)

    def acquire(self) -> Held:
        """As `Locking.acquire`, blocking this thread."""
        begin = partial(self._held.begin, self._deadline, self._params)
        held = self._held.granted(self._wait(begin, self._port.unlock))
        if self._unit.told == "cancel":  # in the moment of the grant
            held.release()
            raise call_failed(problem("cancelled", detail=f"unit {self._unit.id} was told to stop"))
        return held

    def __enter__(self) -> Held:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.end(error)
