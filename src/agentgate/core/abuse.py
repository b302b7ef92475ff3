"""Abuse: a caller that goes on asking for what it was told never to ask for again.

What is decided: whether a call may pass, or its caller is held back from this target for a while. Rules:

- An answer with `retry: never` is final for this very request: the same key, or, for a read, the same body. Who makes
  it again, after that answer came, and gets such an answer again, has *repeated* it. Different requests of one caller
  are no repeats of each other, however many fail.
- Repeats of a request add up; one is forgiven every `forgive_s`. So a person who tries again now and then never gets
  anywhere near `repeats_max`, and a loop does within some tries. An answer from the ledger costs the gate next to
  nothing and counts as a tenth.
- At `repeats_max` the caller is held back from this target: every call is refused with `abnormal_usage` and the time
  that is left, first for `hold_s`, twice that when it goes on afterwards, up to `hold_max_s`. Each `hold_max_s` of
  peace takes one doubling back. What is refused meanwhile prolongs nothing.
- Some final answers may be asked for again, and do not count: `MAY_BE_REPEATED`. Nor do calls that say `again`.

How it works. Two bounded maps, of requests that were answered so and of callers that are or were held back. A call
that ends well touches neither.

Not covered: how many messages a sender sends (rate), and calls that are refused before they are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import Final, NamedTuple

from agentgate.core.bounded import BoundedMap
from agentgate.core.keys import fingerprint
from agentgate.core.ranges import require
from agentgate.model import Call, Outcome, Problem, problem

# Final answers after which the same request may come again: the advice says so (the key may have an answer by then), or
# nobody was answered, or the fault is ours.
MAY_BE_REPEATED: Final = frozenset({"deadline_exceeded", "outcome_unknown", "needs_human", "cancelled", "internal"})
STORED_WEIGHT: Final = 0.1  # of an answer from the ledger; a loop without a pause is still found within some seconds
REQUESTS_MAX: Final = 10_000
CALLERS_MAX: Final = 10_000
IDLE_S: Final = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class AbuseOptions:
    """From when on a caller is held back, and how long. Times in seconds.

    - `repeats_max`, 5: more than a careful program ever repeats what was final; a loop gets there in its first minute.
    - `forgive_s`, 20: a person, or a job that runs every minute, is forgiven faster than it can repeat.
    - `hold_s`, 5, doubling to `hold_max_s`, 300: long enough to be felt, and short enough for one that has stopped.
    """

    repeats_max: int = 5
    forgive_s: float = 20.0
    hold_s: float = 5.0
    hold_max_s: float = 300.0

    def __post_init__(self) -> None:
        require(self, "repeats_max", low=1, high=1000)
        require(self, "forgive_s", "hold_s", "hold_max_s", low=0.1, high=86_400.0)
        if self.hold_max_s < self.hold_s:
            raise ValueError(f"hold_max_s ({self.hold_max_s:g}) must not be below hold_s ({self.hold_s:g})")


class Hold(NamedTuple):
    """A caller has been held back: for how long, after how many repeats of an answer with this code."""

    hold_s: float
    repeats: int
    code: str


class _Request:
    """A request that was answered `retry: never`."""

    __slots__ = ("answered_at", "at", "repeats", "score")

    def __init__(self, now: float) -> None:
        self.answered_at = now
        self.at = now
        self.score = 0.0
        self.repeats = 0


class _Caller:
    """Who was held back from a target."""

    __slots__ = ("code", "doublings", "until")

    def __init__(self) -> None:
        self.until = 0.0
        self.doublings = -1
        self.code = ""


class Abuse:
    """Who repeats what was final, and who is held back for it."""

    def __init__(self, options: AbuseOptions) -> None:
        self._options = options
        self._doublings_max = ceil(log2(options.hold_max_s / options.hold_s))
        self._requests: BoundedMap[tuple[str, ...], _Request] = BoundedMap(REQUESTS_MAX)
        self._callers: BoundedMap[tuple[str, str, str], _Caller] = BoundedMap(CALLERS_MAX)
        self.any_held = False  # somebody was, of late: only then is there anything to ask before a call

    def __len__(self) -> int:
        return len(self._requests) + len(self._callers)

    def refusal(self, call: Call, now: float) -> Problem | None:
        """Why this call may not pass; None when its caller is not held back."""
        held = self._callers.peek((call.tenant, call.caller, call.target))
        if held is None or held.until <= now:
            return None
        left_s = held.until - now
        detail = (
            f"{call.caller} went on repeating calls to {call.target} that were answered {held.code!r} with "
            f"`retry: never`; it is held back for {left_s:.3g} s more"
        )
        return problem("abnormal_usage", retry_after_s=left_s, detail=detail)

    def answered(self, call: Call, outcome: Outcome, now: float) -> Hold | None:
        """The call came to this; a hold means that it was one repeat too many."""
        error = outcome.error
        if error is None or error.retry != "never" or call.again or _may_come_again(call, error.code):
            return None
        name = _name(call)
        request = self._requests.get(name)
        if request is None:
            self._sweep(now)
            self._requests[name] = _Request(now)
            return None
        if call.received_at <= request.answered_at:  # it was under way before anybody was told
            return None
        forgiven = (now - request.at) / self._options.forgive_s
        weight = STORED_WEIGHT if outcome.replayed else 1.0
        request.score = max(0.0, request.score - forgiven) + weight
        request.at = now
        request.repeats += 1
        return self._hold(call, request, error.code, now) if request.score >= self._options.repeats_max else None

    def _hold(self, call: Call, request: _Request, code: str, now: float) -> Hold | None:
        options = self._options
        name = (call.tenant, call.caller, call.target)
        held = self._callers.get(name)
        if held is None:
            held = self._callers[name] = _Caller()
        if held.until > now:  # this call was under way when the last one was judged
            return None
        peace = int((now - held.until) / options.hold_max_s)
        held.doublings = min(max(-1, held.doublings - peace) + 1, self._doublings_max)
        hold_s = min(options.hold_s * 2**held.doublings, options.hold_max_s)
        held.until = now + hold_s
        held.code = code
        request.score = float(options.repeats_max)  # one more after the hold is enough for the next one
        self.any_held = True
        return Hold(hold_s, request.repeats, code)

    def _sweep(self, now: float) -> None:
        self._requests.sweep(now, IDLE_S)
        self._callers.sweep(now, IDLE_S)
        self.any_held = len(self._callers) > 0


def _may_come_again(call: Call, code: str) -> bool:
    """A read has no key under which an answer might come later."""
    return code in MAY_BE_REPEATED and (call.keyed or code != "deadline_exceeded")


def _name(call: Call) -> tuple[str, ...]:
    """The very request: by its key, or by its body."""
    what = (call.business_key, call.action) if call.keyed else (fingerprint(call.payload),)
    return call.tenant, call.caller, call.target, call.task_type, *what
