"""What an outcome says about its target: the one place where fault classes become verdicts.

Breakers and the ejection of instances must never learn from what is not the target's doing (FAILURES kind 4), so both
ask here and nowhere else. The rules (DESIGN 4.1):

- `ok`: an answer with a value.
- `raised`: the handler raised. A fault, although it shows that the target can be reached.
- `unanswered`: sent, then timed out, reset or lost. A fault.
- `unconnected`: could not be sent. A fault of the agent as a whole, whatever the task type.
- `rejected`: a business "no"; a breaker counts it by frequency, if it is configured to.
- `neutral`: everything else. Throttled, malformed, refused by the gate, wrong requests, callers that left, our own
  defects. So is a deadline that passed before anything was sent: the target has not been asked. And so is the answer
  of a degraded handler, which stands in for one that did not come.

Not covered: whether a fault is the agent's or only one instance's (`core.slots`).
"""

from __future__ import annotations

from typing import Final, Literal

from agentgate.errors import Fault
from agentgate.model import Outcome

Verdict = Literal["ok", "raised", "unanswered", "unconnected", "rejected", "neutral"]
InstanceVerdict = Literal["ok", "fault", "neutral"]

_BY_FAULT: Final[dict[Fault, Verdict]] = {
    "unreachable": "unanswered",
    "throttled": "neutral",
    "malformed": "neutral",
    "rejected": "rejected",
    "handler_error": "raised",
    "refused": "neutral",
    "cancelled": "neutral",
    "caller": "neutral",
    "internal": "neutral",
}

_OF_INSTANCE: Final[dict[Verdict, InstanceVerdict]] = {
    "ok": "ok",
    "raised": "fault",
    "unanswered": "fault",
    "unconnected": "fault",
    "rejected": "ok",  # its handler ran and decided: the process works
    "neutral": "neutral",
}


def verdict_of(outcome: Outcome) -> Verdict:
    """What the outcome of an attempt says about the agent that was asked."""
    error = outcome.error
    if error is None:
        return "neutral" if outcome.degraded else "ok"
    if error.fault == "unreachable" and not error.sent:
        return "neutral" if error.code == "deadline_exceeded" else "unconnected"
    return _BY_FAULT[error.fault]


def instance_verdict(outcome: Outcome) -> InstanceVerdict:
    """What the outcome of an attempt says about the instance that was asked."""
    return _OF_INSTANCE[verdict_of(outcome)]
