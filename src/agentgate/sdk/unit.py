"""One unit of work, as its handler sees it: who asks, for how long, and whether to stop."""

from __future__ import annotations

from typing import Any, Unpack

from agentgate.model.link import CallParams, InvokeParams, LockParams, SignalParams, StopKind, WaitForParams
from agentgate.model.lock import LockMode, LockScope
from agentgate.model.outcome import problem
from agentgate.sdk.calling import CallOptions, call_failed, call_params, check_options, lock_params
from agentgate.sdk.news import signal_params, wait_for_params
from agentgate.sdk.port import LinkPort


class Unit:
    """One execution of a handler. Read and told from several threads; every field changes in one direction only."""

    __slots__ = ("deadline", "ended", "id", "lost", "params", "told")

    def __init__(self, unit_id: str, params: InvokeParams, deadline: float) -> None:
        self.id = unit_id
        self.params = params
        self.deadline = deadline  # on the port's clock
        self.told: StopKind | None = None
        self.ended = False
        self.lost = ""  # which locks it has lost while it held them


class UnitView:
    """What `Context` and `SyncContext` have in common."""

    def __init__(self, unit: Unit, port: LinkPort) -> None:
        self._unit = unit
        self._port = port

    @property
    def unit(self) -> str:
        """The id of this execution, unique in the world."""
        return self._unit.id

    @property
    def chain(self) -> str:
        """The trace id, shared by everything that one root call leads to; empty when unknown."""
        parts = self._unit.params.traceparent.split("-")
        return parts[1] if len(parts) == 4 else ""  # noqa: PLR2004 - version, trace, span, flags (W3C)

    @property
    def key(self) -> str:
        """The idempotency key `caller:task_type:business_key:action`, to be passed to systems that take one."""
        return self._unit.params.key

    @property
    def caller(self) -> str:
        """Who called."""
        return self._unit.params.caller

    @property
    def task_type(self) -> str:
        """What was called."""
        return self._unit.params.task_type

    @property
    def business_key(self) -> str:
        """The object that the call is about, as the caller named it."""
        return self._unit.params.business_key

    @property
    def action(self) -> str:
        """Tells effects on the same object apart."""
        return self._unit.params.action

    @property
    def attempt(self) -> int:
        """Counts the dispatches of the call, from 1."""
        return self._unit.params.attempt

    @property
    def deadline(self) -> float:
        """Seconds left until the deadline; 0 afterwards."""
        return max(0.0, self._unit.deadline - self._port.now())

    @property
    def expired(self) -> bool:
        """Whether to stop: the deadline has passed, or the gate said so. No call begins; what is done still counts."""
        return self._unit.told is not None or self._port.now() >= self._unit.deadline

    def progress(self, note: str) -> None:
        """Say how far the work has come ("3 of 10"). Never waits; when notes come too fast, the latest is sent."""
        if not self._unit.ended:
            self._port.progress(self._unit.id, str(note)[:NOTE_MAX])

    def _call(
        self, target: str, task_type: str, business_key: str, payload: Any, **options: Unpack[CallOptions]
    ) -> CallParams:
        """The call made inside this unit; raises `CallFailed` when none may begin any more."""
        self._require_going_on()
        check_options(options)
        timeout = options.get("timeout")
        if timeout is not None:
            options["timeout"] = min(timeout, self.deadline)
        return call_params(
            target,
            task_type,
            business_key,
            payload,
            bytes_max=self._port.payload_bytes_max,
            token=self._unit.params.token,
            **options,
        )

    def _wait_for(self, name: str, about: str | None, from_agent: str | None, timeout: float | None) -> WaitForParams:
        """The wait of this unit for a signal; about its own business key, if nothing is said."""
        self._require_going_on()
        return wait_for_params(
            name,
            about=self.business_key if about is None else about,
            from_agent="" if from_agent is None else from_agent,
            timeout=timeout if timeout is None else min(timeout, self.deadline),
            token=self._unit.params.token,
        )

    def _signal(self, name: str, about: str | None, value: Any, to: str | None) -> SignalParams:
        """A signal of this unit."""
        self._require_going_on()
        return signal_params(
            name,
            about=self.business_key if about is None else about,
            value=value,
            to="" if to is None else to,
            token=self._unit.params.token,
            bytes_max=self._port.payload_bytes_max,
        )

    def _lock(
        self, names: tuple[str, ...], mode: LockMode, timeout: float | None, scope: LockScope
    ) -> tuple[LockParams, float]:
        """A request for locks made inside this unit, and when the gate has answered it at the latest."""
        self._require_going_on()
        params = lock_params(
            names,
            bytes_max=self._port.payload_bytes_max,
            token=self._unit.params.token,
            mode=mode,
            scope=scope,
            timeout=timeout,
        )
        if timeout is None:
            return params, self._unit.deadline
        return params, min(self._unit.deadline, self._port.now() + timeout * SPREAD_MOST)

    def _require_going_on(self) -> None:
        """Raise `CallFailed` when this unit may begin nothing more."""
        self._port.require_process()
        unit = self._unit
        if unit.ended:
            raise call_failed(problem("lease_lost", detail=f"unit {unit.id} has ended; its context begins nothing"))
        if unit.lost:
            raise call_failed(problem("lease_lost", detail=f"unit {unit.id} has lost {unit.lost}"))
        if unit.told == "cancel":
            raise call_failed(problem("cancelled", detail=f"unit {unit.id} was told to stop"))
        if self.expired:
            raise call_failed(problem("deadline_exceeded", detail=f"the deadline of unit {unit.id} has passed"))

    def _call_deadline(self, params: CallParams | WaitForParams) -> float:
        """When the gate answers this call, or ends this wait, at the latest."""
        if params.timeout_ms is None:
            return self._unit.deadline
        return min(self._unit.deadline, self._port.now() + params.timeout_ms / 1000)


SPREAD_MOST = 1.5  # the gate spreads the time-outs of locks, by less than half either way
NOTE_MAX = 200  # characters; a note is read by people
