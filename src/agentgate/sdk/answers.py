"""What a handler's end means, as the answer of its unit (DESIGN 4.1).

A value; `Rejected` (a final no); `TryLater` (nothing happened); told to stop and stopped (`cancelled`); a wait
that was in vain, or part of a circle (`needs_human`); anything else is `handler_error`, the time-out of a lock or of a
call too: whether something has happened before it, and whether to ask again, only the handler knows. Whatever a handler
raises or returns, there is an answer, and its text is short and safe to store.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from agentgate.errors import CODES, CallFailed, Fault, Rejected, TryLater
from agentgate.model.link import Answer
from agentgate.model.outcome import Problem
from agentgate.sdk.payload import ValueDefect, checked_json

# How a wait ends that is no fault of the handler that waited: not raised but said, all the way up.
# Each with what to do about it, where that is not what the error itself says.
WAITED_IN_VAIN: Final = {
    "needs_human": "",
    "promise_broken": (
        "The signal will not come by itself: see what came of that work. Once it is put right, run the key again with "
        "`again`."
    ),
    "deadlock": (
        "It gave way so that others get on. By now they may have: run the key again with `again`; if it comes back, "
        "change one of the agents in the circle."
    ),
}
DETAIL_MAX: Final = 2_000  # characters: enough for a reason and a path, little beside a payload


class InputDefect(Exception):
    """The payload does not fit what the handler takes."""


def error_answer(error: BaseException, *, stopped: bool) -> Answer:
    """The handler did not return; `stopped`: it had been told to stop."""
    if isinstance(error, Rejected):
        return _answer("rejected", _reason(error.reason, error.detail))
    if isinstance(error, TryLater):
        return _try_later(error)
    if isinstance(error, InputDefect):
        return _answer("bad_request", safe_text(error), sent=False)
    if isinstance(error, ValueDefect):
        return _answer("malformed_output", safe_text(error))
    if isinstance(error, CallFailed) and error.code in WAITED_IN_VAIN:
        return _answer("needs_human", _bounded(error.detail), advice=WAITED_IN_VAIN[error.code] or error.advice)
    if stopped and isinstance(error, asyncio.CancelledError):
        return _answer("cancelled", "the handler was told to stop")
    return _answer("handler_error", _bounded(f"{type(error).__name__}: {safe_text(error)}"))


def not_sent(why: str, *, code: str = "overloaded", fault: Fault | None = "throttled") -> Answer:
    """Nothing happened here; by default the gate may ask elsewhere, or later."""
    return _answer(code, why, sent=False, fault=fault)


def safe_text(error: BaseException) -> str:
    """What an exception says, bounded, without characters that a store or a terminal would choke on."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - the exception's own code fails, and its answer must not be lost
        text = f"(its text cannot be read: {type(broken).__name__})"
    return _bounded(text)


def _try_later(error: TryLater) -> Answer:
    code = "rate_limited" if error.everyone else "overloaded"
    return _answer(
        code, _bounded(error.args[0] if error.args else ""), sent=False, fault="throttled", after=error.after_s
    )


def _reason(reason: object, detail: object) -> str:
    if detail is None:
        return _bounded(str(reason))
    try:
        shown = bytes(checked_json(detail, DETAIL_MAX)).decode()
    except ValueDefect:
        shown = _bounded(repr(type(detail)))
    return _bounded(f"{reason}: {shown}")


def _answer(
    code: str,
    detail: str,
    *,
    sent: bool = True,
    fault: Fault | None = None,
    after: float | None = None,
    advice: str = "",
) -> Answer:
    info = CODES[code]
    return Answer(
        error=Problem(
            code=code,
            fault=fault or info.fault,
            sent=sent,
            retry=info.retry,
            retry_after_ms=None if after is None else max(0, round(after * 1000)),
            advice=advice or info.advice,
            detail=detail,
        )
    )


def _bounded(text: Any) -> str:
    safe = str(text).replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    return safe if len(safe) <= DETAIL_MAX else safe[: DETAIL_MAX - 1] + "\N{HORIZONTAL ELLIPSIS}"
