"""A call from the caller's side: what may be said, how it is checked, what its outcome becomes.

The gate holds every policy. Checked here is only what would not survive the way to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, TypedDict

from agentgate.errors import CODES, CallFailed, OutcomeUnknown
from agentgate.model.call import Effect, OnDisconnect
from agentgate.model.link import CallParams, LockParams
from agentgate.model.lock import LockMode, LockScope
from agentgate.model.outcome import Outcome, Problem, problem
from agentgate.sdk.answers import safe_text
from agentgate.sdk.payload import ValueDefect, checked_json
from agentgate.sdk.port import Asked, LinkPort
from agentgate.sdk.typed import convert


class CallOptions(TypedDict, total=False):
    """What a call may say besides target, task type, business key and payload."""

    action: str  # tells effects on the same object apart ("run")
    effect: Effect  # "write" (the default) needs a business key; "read" promises that nothing changes
    heavy: bool  # allow more time: its own window of durations, up to 120 s an attempt
    timeout: float | None  # seconds until the call's deadline (the gate's default: 30, or what is left of the caller's)
    priority: int | None  # 0 to 9, 9 first; by default from the caller's tier
    again: bool  # run a key again whose stored outcome is a failure
    join: bool  # False: do not wait for a run of the same key that is under way, but say that it is
    on_disconnect: OnDisconnect | None  # what happens to the work when this process is gone
    user: str  # on whose behalf (the caller's own); a call made in a handler has the user of its root


def check_options(options: Mapping[str, object]) -> None:
    """Raises `TypeError` for an option that a call does not have, with the nearest one that it has."""
    for name in options:
        if name not in CallOptions.__annotations__:
            near = get_close_matches(name, CallOptions.__annotations__, 1)
            known = ", ".join(CallOptions.__annotations__)
            raise TypeError(
                f"call() has no option {name!r}; " + (f"did you mean {near[0]!r}?" if near else f"there are {known}")
            )


def call_params(  # noqa: PLR0913 - the fields of a call, named
    target: str,
    task_type: str,
    business_key: str,
    payload: Any,
    *,
    bytes_max: int,
    token: str = "",
    action: str = "run",
    effect: Effect = "write",
    heavy: bool = False,
    timeout: float | None = None,
    priority: int | None = None,
    again: bool = False,
    join: bool = True,
    on_disconnect: OnDisconnect | None = None,
    user: str = "",
) -> CallParams:
    """The call as it is sent; raises `CallFailed` when it cannot be."""
    names = {"target": target, "task_type": task_type, "business_key": business_key, "action": action, "user": user}
    for name, value in names.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, not {value!r}")
    try:
        checked_json(names, bytes_max)
        raw = checked_json(payload, bytes_max)
    except ValueDefect as defect:
        code = "too_large" if defect.code == "too_large" else "bad_request"
        raise call_failed(problem(code, detail=f"call of `{task_type}`: {defect}")) from defect
    if timeout is not None and timeout <= 0:
        raise call_failed(problem("deadline_exceeded", detail="no time was left for the call"))
    return CallParams(
        target=target,
        task_type=task_type,
        business_key=business_key,
        action=action,
        payload=raw,
        effect=effect,
        heavy=heavy,
        timeout_ms=None if timeout is None else max(1, round(timeout * 1000)),
        priority=priority,
        again=again,
        join=join,
        on_disconnect=on_disconnect,
        user=user,
        token=token,
    )


def lock_params(
    names: tuple[str, ...], *, bytes_max: int, token: str, mode: LockMode, scope: LockScope, timeout: float | None
) -> LockParams:
    """A request for locks as it is sent; raises `CallFailed` when it cannot be."""
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"the names of locks are strings, one after the other: lock('a', 'b'), not {names!r}")
    try:
        checked_json([*names, mode, scope], bytes_max)
    except ValueDefect as defect:
        raise call_failed(problem("bad_request", detail=f"lock: {defect}")) from defect
    timeout_ms = None if timeout is None else max(0, round(timeout * 1000))
    return LockParams(names=names, mode=mode, scope=scope, timeout_ms=timeout_ms, token=token)


async def exchange(port: LinkPort, params: Asked, deadline: float | None) -> Outcome:
    """Send a call, or a signal, and wait for its outcome; when the waiting is cancelled, so is the call."""
    answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    call_id = port.start_call(params, deadline, partial(settle, answered))
    try:
        return await answered
    except asyncio.CancelledError:
        port.cancel_call(call_id)
        raise


def value_of(outcome: Outcome, returns: Any) -> Any:
    """The value of a call, as the type the caller wants (`Outcome`: with all that is known); raises `CallFailed`."""
    if outcome.error is not None:
        raise call_failed(outcome.error)
    if returns is None:
        return outcome.value
    if returns is Outcome:
        return outcome
    try:
        return convert(outcome.value, returns)
    except Exception as error:
        detail = f"the answer is no {getattr(returns, '__name__', returns)}: {safe_text(error)}"
        raise call_failed(problem("malformed_output", sent=True, detail=detail)) from error


def call_failed(error: Problem) -> CallFailed:
    """An error value as the exception that a caller sees."""
    kind = OutcomeUnknown if error.code == "outcome_unknown" else CallFailed
    info = CODES.get(error.code)
    return kind(
        code=error.code,
        fault=error.fault,
        sent=error.sent,
        retry=error.retry,
        retry_after_ms=error.retry_after_ms,
        advice=error.advice or (info.advice if info is not None else ""),
        detail=error.detail,
    )


def settle(answered: asyncio.Future[Outcome], outcome: Outcome) -> None:
    """Hand an outcome to the task that waits for it, unless that was cancelled."""
    if not answered.done():
        answered.set_result(outcome)
