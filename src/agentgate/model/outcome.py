"""What a call came to: a value, or an error that is a value too."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from agentgate.errors import CODES, Fault, Retry

Status = Literal["done", "failed", "refused", "unknown"]


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as a value: what happened, whose fault it was, whether the request was sent, what to do next."""

    code: str
    fault: Fault
    sent: bool = False
    retry: Retry = "never"
    retry_after_ms: int | None = None
    advice: str = ""
    detail: str = ""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a call (or of one attempt, inside the gate).

    `replayed` says that the answer comes from the ledger or from a flight this call joined, `first_seen_at` (seconds
    since the epoch) when its key was first seen, `key` the idempotency key as shown. `degraded`: the answer is that of
    the skill's degraded handler; what became of the effect is not known yet.
    """

    value: Any = None
    error: Problem | None = None
    replayed: bool = False
    joined: bool = False
    degraded: bool = False
    first_seen_at: float | None = None
    key: str = ""

    @property
    def ok(self) -> bool:
        """Whether the call came to a value."""
        return self.error is None

    @property
    def code(self) -> str:
        """The error code, or an empty string."""
        return self.error.code if self.error is not None else ""

    @property
    def status(self) -> Status:
        """Done, failed, refused (nothing was done) or unknown."""
        if self.error is None:
            return "done"
        if self.error.code == "outcome_unknown":
            return "unknown"
        return "refused" if self.error.fault in ("refused", "caller") and not self.error.sent else "failed"


def problem(
    code: str, *, sent: bool = False, retry_after_s: float | None = None, detail: str = "", advice: str = ""
) -> Problem:
    """An error value of a known code, filled from the table of codes.

    `fault` and `retry` come from the table, and `advice` where the cause has none of its own; a known time to wait is
    given in seconds and carried in milliseconds.
    """
    info = CODES[code]
    return Problem(
        code=code,
        fault=info.fault,
        sent=sent,
        retry=info.retry,
        retry_after_ms=None if retry_after_s is None else max(0, round(retry_after_s * 1000)),
        advice=advice or info.advice,
        detail=detail,
    )


def failure(
    code: str, *, sent: bool = False, retry_after_s: float | None = None, detail: str = "", advice: str = ""
) -> Outcome:
    """An outcome that is an error of a known code."""
    return Outcome(error=problem(code, sent=sent, retry_after_s=retry_after_s, detail=detail, advice=advice))
