"""What an agent's answer means: to the ledger an event, to the caller an outcome.

Agents are not trusted with the gate's own words: of the codes only those that a handler may speak are taken over,
anything else is an error of the handler. Their advice is taken over only for `needs_human`: they know what they have
waited for. An answer that does not fit the declared schema is no answer (B4).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from agentgate.model import Call, LedgerEvent, Outcome, Problem, Record, failure, problem
from agentgate.model.link import Answer

DETAIL_CHARS_MAX: Final = 2000
ADVICE_CHARS_MAX: Final = 500
RETRY_AFTER_MS_MAX: Final = 86_400_000  # a day; what asks for more is a mistake

# The codes an agent may speak when its handler ran, and what each means to the ledger. A handler that was interrupted
# may have done anything.
RAN: Final[dict[str, LedgerEvent]] = {
    "rejected": "failed",
    "handler_error": "failed",
    "malformed_output": "failed",
    "bad_request": "failed",
    "needs_human": "failed",
    "cancelled": "lost",
}
# The codes an agent may speak when it promises (`sent` false) that nothing happened: the key is free.
DID_NOT_RUN: Final = frozenset(
    {"overloaded", "rate_limited", "bad_request", "no_route", "deadline_exceeded", "cancelled"}
)
THROTTLES: Final = frozenset({"overloaded", "rate_limited"})


def judge(answer: Answer, call: Call, finding: str | None) -> tuple[LedgerEvent, Outcome]:
    """The event and the outcome of an answer; `finding` is what its schema check found."""
    if answer.unseen:
        return "not_sent", failure("agent_lost", detail="the request never reached the agent")
    if answer.error is not None:
        return _judge_error(answer.error, call)
    if finding is not None:
        return "failed", failure("malformed_output", sent=True, detail=finding)
    return "done", Outcome(value=answer.value)


def unknown(record: Record, how: str = "") -> Outcome:
    """Nobody can tell what a key's run came to; `how` it was lost is known only to whoever saw that."""
    agent = record.agent or "the target"
    how = f"{agent} gave no answer: {how}" if how else f"{agent} went away while it worked on it, or gave no answer"
    lost = failure("outcome_unknown", sent=True, detail=how[:DETAIL_CHARS_MAX])
    return replace(lost, first_seen_at=record.first_seen_at or None)


def _judge_error(error: Problem, call: Call) -> tuple[LedgerEvent, Outcome]:
    detail = error.detail[:DETAIL_CHARS_MAX]
    if not error.sent and error.code in DID_NOT_RUN:
        return "not_sent", _did_not_run(error, detail)
    code = error.code if error.code in RAN else "handler_error"
    if code == "cancelled":
        return "lost", failure("agent_lost", sent=True, detail="the handler was interrupted")
    # Running a repeatable skill again does no harm, so a raised error is not kept: the key is free for the next
    # attempt, or the next caller.
    event = "not_sent" if code == "handler_error" and call.repeatable else RAN[code]
    advice = error.advice[:ADVICE_CHARS_MAX] if code == "needs_human" else ""
    return event, failure(code, sent=True, detail=detail, advice=advice)


def _did_not_run(error: Problem, detail: str) -> Outcome:
    if error.code == "cancelled":
        return failure("agent_lost", detail=detail)
    said = problem(error.code, detail=detail)
    fault = "throttled" if error.code in THROTTLES else said.fault
    wait_ms = None if error.retry_after_ms is None else min(max(error.retry_after_ms, 0), RETRY_AFTER_MS_MAX)
    return Outcome(error=replace(said, fault=fault, retry_after_ms=wait_ms))
