"""The one error tree, and the table of codes that every error value carries.

Inside the gate an error is a value (`agentgate.model.Problem`); exceptions exist at the two edges only, where a
handler says what happened and where a caller is told. The tree::

    AgentGateError
    ├── Rejected            a handler says: a final business "no"
    ├── TryLater            a handler promises: nothing happened, ask again later
    ├── CallFailed          a caller is told: the call came to an error
    │   └── OutcomeUnknown  ... and nobody can tell whether the effect happened
    ├── LinkDown            no gate answers; says what to do
    ├── ConfigError         a setting is wrong; names the place and the nearest right one
    ├── WireError           bytes that are not a valid message
    └── StoreError          an adapter translates its driver into exactly three
        ├── StoreBroke      the backend failed; nothing is known to be committed
        ├── StoreConflict   nothing was committed, trying again is right
        └── StoreBadInput   the request can never succeed

`CODES` is the other half: for every code its fault class, whether a retry can help, the HTTP status, and a sentence
of advice that an LLM agent can act on (DESIGN 4.1).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

Fault = Literal[
    "unreachable",  # connect, reset, time-out, 5xx except 500
    "throttled",  # 429, TryLater: the target asks for time
    "malformed",  # the output fails the declared schema
    "rejected",  # a business "no"
    "handler_error",  # the handler raised
    "refused",  # by the gate itself: never a fault of the target
    "cancelled",  # the caller left
    "caller",  # the request itself is wrong
    "internal",  # ours
]
FAULTS: Final[tuple[Fault, ...]] = get_args(Fault)

Retry = Literal["never", "after"]


class CodeInfo(NamedTuple):
    """What every error of one code has in common."""

    fault: Fault
    retry: Retry
    http_status: int
    title: str
    advice: str


CODES: Final[dict[str, CodeInfo]] = {
    "deadline_exceeded": CodeInfo(
        "unreachable",
        "never",
        504,
        "The deadline passed before an answer came",
        "If `sent` is true the work may still finish: repeat the same key later to get its answer.",
    ),
    "breaker_open": CodeInfo(
        "refused",
        "never",
        503,
        "The target is failing and is left alone",
        "Do not retry. Take your degraded branch (another agent, a cached or default answer) or give up.",
    ),
    "rate_limited": CodeInfo(
        "refused",
        "after",
        429,
        "The sender is above its message rate",
        "Send fewer messages; wait for the time in `retry_after_ms`.",
    ),
    "abnormal_usage": CodeInfo(
        "refused",
        "after",
        429,
        "The caller repeats what was answered `retry: never`",
        "Take the loop out: a final answer does not change by asking again. Go on after `retry_after_ms`.",
    ),
    "quota_exhausted": CodeInfo(
        "refused", "after", 429, "The quota is used up", "Wait for the time in `retry_after_ms` or ask for more."
    ),
    "overloaded": CodeInfo(
        "refused",
        "after",
        503,
        "The target has more work than it can take",
        "Nothing was done. Try again after `retry_after_ms`, or take your degraded branch.",
    ),
    "shed": CodeInfo(
        "refused", "after", 503, "Non-core work is shed at this level", "Take your degraded branch; nothing was done."
    ),
    "deadlock": CodeInfo(
        "refused",
        "never",
        409,
        "The call would close a cycle of waits",
        "Do not wait for this target; finish without it, or add the missing context yourself.",
    ),
    "loop": CodeInfo(
        "refused",
        "never",
        409,
        "The same work is already waiting further up this chain",
        "Answer from what you have: the caller above you asked for exactly this and waits for you.",
    ),
    "no_progress": CodeInfo(
        "refused",
        "never",
        409,
        "The same was asked before, and nothing has come of it",
        "Asking once more changes nothing: go on with what you have, take another way, or ask a human.",
    ),
    "chain_limit": CodeInfo(
        "refused",
        "never",
        429,
        "The chain of calls is too deep, too wide or too long",
        "Stop delegating in this chain and answer with what you have.",
    ),
    "key_conflict": CodeInfo(
        "caller",
        "never",
        422,
        "The key was used with another body",
        "A second effect on the same object needs its own `action`; a repeat must carry the same body.",
    ),
    "in_progress": CodeInfo(
        "refused",
        "after",
        409,
        "The same key is running now",
        "Do not start it again. Repeat the same key later to get its answer.",
    ),
    "outcome_unknown": CodeInfo(
        "unreachable",
        "never",
        502,
        "Nobody can tell whether the effect happened",
        "Do not repeat the effect under another key. See the target's own records; a skill with a check is asked.",
    ),
    "no_route": CodeInfo(
        "refused",
        "after",
        404,
        "No agent offers this",
        "Check the name against `agentgate agents`, or start the agent.",
    ),
    "agent_lost": CodeInfo(
        "unreachable",
        "after",
        502,
        "The agent could not be reached, or went away",
        "The work was safe to repeat and may be tried again later.",
    ),
    "malformed_output": CodeInfo(
        "malformed",
        "never",
        502,
        "The output does not fit the declared schema",
        "Check the finding in `detail` and re-plan; the same call would give the same answer.",
    ),
    "rejected": CodeInfo("rejected", "never", 422, "The target says no", "A business decision: do not retry, re-plan."),
    "handler_error": CodeInfo(
        "handler_error",
        "never",
        500,
        "The handler raised",
        "Fix the cause, then call again; a write needs `again` for that, because its failure is stored under the key.",
    ),
    "bad_request": CodeInfo("caller", "never", 400, "The request is wrong", "Correct the request as `detail` says."),
    "too_large": CodeInfo(
        "caller", "never", 413, "The payload is too large", "Send a context id instead of the content."
    ),
    "unauthorized": CodeInfo("caller", "never", 401, "Who you are is not shown", "Present a valid token."),
    "forbidden": CodeInfo(
        "caller",
        "never",
        403,
        "That is not allowed",
        "See `detail`; where it names a scope, ask for a token that has it.",
    ),
    "not_found": CodeInfo("caller", "never", 404, "There is no such thing", "Check the name."),
    "version_conflict": CodeInfo(
        "caller", "never", 409, "Your version is out of date", "Read the current version and apply your change to it."
    ),
    "lease_lost": CodeInfo(
        "refused",
        "never",
        409,
        "This unit of work is closed, or has lost its lock",
        "Stop: your work was ended or handed over, and what you still send is refused.",
    ),
    "promise_broken": CodeInfo(
        "unreachable",
        "never",
        502,
        "The awaited signal will not come",
        "Its agent has ended that work without it: go on without it, or let a human look at what came of that work.",
    ),
    "needs_human": CodeInfo(
        "refused",
        "never",
        409,
        "A human has to decide",
        "What it waited for did not happen in time: do not wait again. Once it has, run the key again with `again`.",
    ),
    "cancelled": CodeInfo("cancelled", "never", 499, "The caller left", "Nothing to do."),
    "store_down": CodeInfo(
        "internal",
        "after",
        503,
        "The store does not answer",
        "Effects are refused while they cannot be recorded; reads go on. Try again after `retry_after_ms`.",
    ),
    "internal": CodeInfo("internal", "never", 500, "The gate has a defect", "Report it with the trace id."),
}


def title_of(code: str) -> str:
    """What a code means, in a few words; empty for one that a newer gate knows."""
    return CODES[code].title if code in CODES else ""


class AgentGateError(Exception):
    """Root of everything AgentGate raises on purpose."""


class Rejected(AgentGateError):
    """A handler's final "no": stored under the key, never retried, no fault of the agent."""

    def __init__(self, reason: str, *, detail: object = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class TryLater(AgentGateError):
    """A handler's promise that nothing happened; the call is tried again after `after` seconds.

    It delays this call alone. With `everyone`, the agent as a whole asks for time (its provider throttles it, say):
    all callers leave it alone until then.
    """

    def __init__(self, reason: str = "", *, after: float | None = None, everyone: bool = False) -> None:
        super().__init__(reason or "try later")
        self.reason = reason
        self.after_s = after
        self.everyone = everyone


class CallFailed(AgentGateError):
    """A call came to an error; the attributes say what to do about it."""

    def __init__(
        self,
        *,
        code: str,
        fault: Fault,
        sent: bool,
        retry: Retry = "never",
        retry_after_ms: int | None = None,
        advice: str = "",
        detail: str = "",
    ) -> None:
        super().__init__(f"{code}: {detail or title_of(code) or advice}")
        self.code = code
        self.fault = fault
        self.sent = sent
        self.retry = retry
        self.retry_after_ms = retry_after_ms
        self.advice = advice
        self.detail = detail


class OutcomeUnknown(CallFailed):
    """The effect may or may not have happened; repeating it under another key could do it twice."""


class LinkDown(AgentGateError):
    """No gate answers, or this process may not use the link; the message says what to type."""


class ConfigError(AgentGateError):
    """Settings cannot be used; each of `flaws` names the place, the value and the nearest right one."""

    def __init__(self, *flaws: str) -> None:
        super().__init__("\n".join(flaws))
        self.flaws = flaws


class WireError(AgentGateError):
    """Bytes that are not a valid message; `code` is `bad_request` or `too_large`."""

    def __init__(self, detail: str, *, code: str = "bad_request") -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class StoreError(AgentGateError):
    """Root of what a store adapter may raise."""


class StoreBroke(StoreError):
    """The backend failed: disk full, file locked, connection gone."""


class StoreConflict(StoreError):
    """Nothing was committed because somebody else was faster; trying again is right."""


class StoreBadInput(StoreError):
    """The request can never succeed as it is."""
