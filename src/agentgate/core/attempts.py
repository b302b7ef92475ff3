"""What follows an attempt: the table of DESIGN 4.1.

What is decided: after an attempt has ended, whether the call is over, may be tried again, waits on for the work that
still runs, or first has to ask whether the effect happened.

Rules. Whatever is known not to have happened may be tried again. Whatever may have happened may be tried again only
when twice does no harm: a read, or a skill declared repeatable. Another write whose answer is late is waited for,
because a second run beside a live one is the failure that this whole platform exists to prevent (FAILURES kind 1);
one whose instance is gone can only be asked about. What the gate itself refuses, and what is wrong with the request,
does not change by repeating.

How it works. `ending` reads an attempt's outcome by these conventions of those who make it:

- not sent: `sent` false and fault `unreachable`; but a deadline that passed before sending leaves no time to try again
- try later: code `overloaded`, fault `throttled`. Every other `throttled` is the target's 429, or 503 with Retry-After
- timed out: code `deadline_exceeded`, sent
- lost: any other `unreachable` that was sent: instance gone, connection reset, HTTP 502, 504 and the like
- the fault says the rest: `handler_error`, `rejected`, `malformed`; all others are refusals

Not covered: whether attempts, budget and time are left (`core.backoff`, `core.budget`, the deadline).
"""

from __future__ import annotations

from typing import Final, Literal

from agentgate.errors import Fault
from agentgate.model import Outcome

Ending = Literal[
    "answered",
    "not_sent",  # the request never reached the target
    "try_later",  # the handler promises that nothing happened
    "throttled",  # 429, or 503 with Retry-After
    "timed_out",  # sent, then no answer in time; the work may still run
    "lost",  # sent, then the instance or the connection went away
    "handler_raised",
    "rejected",
    "malformed",
    "refused",  # by the gate, or the request is wrong, or its caller left
]

Next = Literal[
    "final",  # the outcome stands
    "retry",  # another attempt
    "wait_on",  # no second run: wait for the same unit until the call's deadline
    "ask_check",  # ask the skill's check whether it happened; without one the outcome is unknown
]

# The second column holds for a read and for a skill declared repeatable, the third for every other write.
_TABLE: Final[dict[Ending, tuple[Next, Next]]] = {
    "answered": ("final", "final"),
    "not_sent": ("retry", "retry"),
    "try_later": ("retry", "retry"),
    "throttled": ("retry", "retry"),
    "timed_out": ("retry", "wait_on"),
    "lost": ("retry", "ask_check"),
    "handler_raised": ("retry", "final"),
    "rejected": ("final", "final"),
    "malformed": ("final", "final"),
    "refused": ("final", "final"),
}

_BY_FAULT: Final[dict[Fault, Ending]] = {
    "unreachable": "lost",
    "throttled": "throttled",
    "malformed": "malformed",
    "rejected": "rejected",
    "handler_error": "handler_raised",
    "refused": "refused",
    "cancelled": "refused",
    "caller": "refused",
    "internal": "refused",
}


def ending(outcome: Outcome) -> Ending:
    """How an attempt ended."""
    error = outcome.error
    if error is None:
        return "answered"
    if error.fault == "unreachable" and error.code == "deadline_exceeded":
        return "timed_out" if error.sent else "refused"
    if error.fault == "unreachable" and not error.sent:
        return "not_sent"
    if error.fault == "throttled" and error.code == "overloaded":
        return "try_later"
    return _BY_FAULT[error.fault]


def after_attempt(ended: Ending, *, repeatable: bool) -> Next:
    """What follows; `repeatable` says that running it twice does no harm: a read, or a skill declared so."""
    safe, write = _TABLE[ended]
    return safe if repeatable else write
