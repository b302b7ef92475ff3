"""One circuit breaker: leaves a failing target alone, then tries it again with a few real calls.

Decides whether a call may pass now, from what became of the calls before. The table::

    closed --trip--> open --wait_over--> half_open --recovered--> closed
                      ^                      |
                      `---- trial_failed ----'

Rules (DESIGN 4.3):

- **Closed.** A bad outcome opens it when one of these holds over the window: faults / outcomes >= `error_ratio`, slow
  answers / outcomes >= `slow_ratio`, rejections / outcomes >= `rejected_ratio`, each with at least `outcomes_min`
  outcomes; or when it is the last of `faults_in_a_row`. Every test is "at least", so a ratio of 1.0 can be met. A good
  answer never opens it, whatever the ratio. So does a backlog of `backlog` waiting calls.
- **Open.** Nothing passes for `open_s`, twice that after every opening up to `open_max_s`, each time spread by
  `open_spread`, so that breakers do not come back in step. After a whole window closed the time starts at `open_s`
  again. Late outcomes change nothing: neither the counts nor the time of reopening.
- **Half-open.** At most `half_open_max` calls at a time pass, as trials; in the first `light_only_s` only light ones.
  `successes_to_close` good ones in a row close it with an empty window, one bad one opens it again. A slow trial is a
  bad one. A trial that has not left after its time limit is a bad one too, from that moment on: a lost trial can
  neither hold the breaker half-open nor hold a permit for ever.
- **Neutral** outcomes move no counter; they give back the permit of a trial.
- An outcome counts only in the *era* in which its call entered; every change of state begins a new era. What comes
  later is about the past.

How it works. Time moves the machine only when it is looked at, but always as of the moment at which the change was
due: the result does not depend on who looked when. Observe mode enters without asking; then trials are unlimited.

Not covered: which calls share a breaker (`core.breakers`), what counts as a fault (`core.verdict`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from agentgate.core.breaker_window import FAULT, OK, REJECTED, SLOW, Window
from agentgate.core.ranges import require
from agentgate.core.table import step

State = Literal["closed", "open", "half_open"]
Event = Literal["trip", "wait_over", "trial_failed", "recovered"]
Result = Literal["ok", "fault", "rejected", "neutral"]

TABLE: Final[dict[tuple[State, Event], State]] = {
    ("closed", "trip"): "open",
    ("open", "wait_over"): "half_open",
    ("half_open", "trial_failed"): "open",
    ("half_open", "recovered"): "closed",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakerOptions:
    """When a breaker opens and how it closes again. Times in seconds.

    - `error_ratio`, 0.3, over `window_s`, 60: the mission's numbers (B2). With `outcomes_min`, 10: fewer say little.
    - `faults_in_a_row`, 5: a target that is plainly down is left alone long before the window fills.
    - `slow_call_s`, off: how long an answer may take before it is slow differs too much between agents for a default.
      With `slow_ratio`, 0.5. Calls declared heavy are never slow.
    - `backlog`, off: the queue of an agent is bounded anyway and refuses with a time, which is the milder answer.
    - `rejected_ratio`, off: a business "no" is an answer (B4).
    - `open_s`, 10, doubling to `open_max_s`, 60, spread by `open_spread`, 0.2: long enough for a restart, short
      enough not to be the outage itself.
    - `half_open_max`, 5, and `successes_to_close`, 3: the mission's five trials (B3); three are no lucky accident.
    - `trial_timeout_s`, 30, and `heavy_trial_timeout_s`, 120: the upper clamps of an attempt's time-out.
    - `light_only_s`, 10: the lightest first (B3), but heavy work must be able to close its own breaker too.
    - `breakers_max`, 10 000: task types and agents are remote names; `types_max`, 64: typical durations kept an agent.
    """

    error_ratio: float = 0.3
    window_s: float = 60.0
    outcomes_min: int = 10
    faults_in_a_row: int = 5
    slow_call_s: float | None = None
    slow_ratio: float = 0.5
    backlog: int | None = None
    rejected_ratio: float | None = None
    open_s: float = 10.0
    open_max_s: float = 60.0
    open_spread: float = 0.2
    half_open_max: int = 5
    successes_to_close: int = 3
    trial_timeout_s: float = 30.0
    heavy_trial_timeout_s: float = 120.0
    light_only_s: float = 10.0
    breakers_max: int = 10_000
    types_max: int = 64

    def __post_init__(self) -> None:
        require(self, "error_ratio", "slow_ratio", low=0.001, high=1.0)
        require(self, "rejected_ratio", low=0.001, high=1.0, off=True)
        require(self, "window_s", "open_s", "open_max_s", "trial_timeout_s", "heavy_trial_timeout_s", low=0.001)
        require(self, "outcomes_min", "faults_in_a_row", "half_open_max", "successes_to_close", low=1)
        require(self, "breakers_max", "types_max", low=1)
        require(self, "slow_call_s", low=0.001, off=True)
        require(self, "backlog", low=1, off=True)
        require(self, "open_spread", high=0.9)
        require(self, "light_only_s")
        if self.open_max_s < self.open_s:
            raise ValueError(f"open_max_s ({self.open_max_s:g}) must not be below open_s ({self.open_s:g})")


class Pass(Struct, eq=False):
    """One call's way through one breaker, from `enter` to `leave`."""

    era: int
    entered_at: float
    heavy: bool
    fault: Fault | None = None  # how it was counted, if it was a fault that counted


class Fault(NamedTuple):
    """Where a fault was counted, so that it can be taken back."""

    era: int
    serial: int  # the breaker's faults are numbered from 1
    bucket: int


LEFT: Final = -1  # the era of a pass that has left


class Breaker:
    """One machine; `since` is when its state began, `openings` how often it opened.

    `on_open` hears of every opening, and of the time at which trials will begin.
    """

    __slots__ = (
        "_draw",
        "_era",
        "_good_row",
        "_on_open",
        "_options",
        "_run",
        "_run_after",
        "_serial",
        "_trials",
        "_until",
        "_wait_s",
        "openings",
        "since",
        "state",
        "window",
    )

    def __init__(
        self,
        options: BreakerOptions,
        draw: Callable[[], float],
        now: float,
        on_open: Callable[[float], None] | None = None,
    ) -> None:
        self._options = options
        self._draw = draw
        self._on_open = on_open
        self.state: State = "closed"
        self.since = now
        self.openings = 0
        self.window = Window(options.window_s)
        self._era = 0
        self._serial = 0  # faults counted so far
        self._run = 0  # faults in a row
        self._run_after = 0  # the run consists of faults with a serial above this one
        self._wait_s = 0.0
        self._until = 0.0  # open: when it becomes half-open
        self._trials: dict[Pass, float] = {}  # when each counts as failed
        self._good_row = 0

    def refusal(self, now: float, *, light: bool = True) -> float | None:
        """None when a call may enter now, else the seconds after which asking again makes sense."""
        state = self.state_at(now)
        if state == "closed":
            return None
        if state == "open":
            return self._until - now
        light_only_until = self.since + self._options.light_only_s
        if not light and now < light_only_until:
            return light_only_until - now
        if len(self._trials) >= self._options.half_open_max:
            return self.next_expiry() - now
        return None

    def enter(self, now: float, *, heavy: bool = False, limit_s: float = 0.0) -> Pass:
        """Let a call in; `limit_s` is its own longest time, where that is above the usual one."""
        state = self.state_at(now)
        entered = Pass(self._era, now, heavy)
        if state == "half_open":
            usual_s = self._options.heavy_trial_timeout_s if heavy else self._options.trial_timeout_s
            self._trials[entered] = now + max(usual_s, limit_s)
        return entered

    def leave(self, entered: Pass, result: Result, now: float) -> None:
        """Count what became of a call; each `Pass` leaves exactly once."""
        era = entered.era
        assert era != LEFT, "a pass leaves once"
        entered.era = LEFT
        if self.state != "closed":
            self.advance(now)
        if era != self._era:
            return
        slow_s = self._options.slow_call_s
        slow = slow_s is not None and result == "ok" and not entered.heavy and now - entered.entered_at >= slow_s
        if self.state == "closed":
            self._count(entered, result, now, slow=slow)
        elif self.state == "half_open":
            self._judge(entered, result, now, slow=slow)

    def retract(self, entered: Pass, now: float) -> None:
        """Uncount a fault that turned out to be another's.

        Only what is still in the window and the run of the same era can be taken back. A breaker that has opened
        meanwhile stays open: its trials will tell.
        """
        fault, entered.fault = entered.fault, None
        if fault is None or fault.era != self._era:
            return
        self.window.take_back(FAULT, fault.bucket, now)
        if fault.serial > self._run_after:
            self._run -= 1

    def note_backlog(self, queued: int, now: float) -> None:
        """So many calls wait for this target."""
        limit = self._options.backlog
        if limit is not None and queued >= limit and self.state == "closed":
            self._open("trip", now)

    def state_at(self, now: float) -> State:
        """The state now."""
        if self.state != "closed":
            self.advance(now)
        return self.state

    def advance(self, now: float) -> None:
        """Apply what the passing of time means, as of when it was due."""
        if self.state == "half_open" and self._trials:
            expiry = self.next_expiry()
            if expiry <= now:
                self._open("trial_failed", expiry)
        if self.state == "open" and self._until <= now:
            self._move("wait_over", self._until)

    def next_expiry(self) -> float:
        """When the first trial counts as failed; infinity without trials."""
        return min(self._trials.values(), default=inf)

    @property
    def reopens_at(self) -> float | None:
        """When trials begin, while it is open."""
        return self._until if self.state == "open" else None

    def _count(self, entered: Pass, result: Result, now: float, *, slow: bool) -> None:
        if result == "ok":
            self.window.add(OK, now)
            self._run = 0
            self._run_after = self._serial
            if not slow:
                return
            self.window.add(SLOW, now)
        elif result == "fault":
            self._serial += 1
            self._run += 1
            entered.fault = Fault(self._era, self._serial, self.window.add(FAULT, now))
        elif result == "rejected" and self._options.rejected_ratio is not None:
            self.window.add(REJECTED, now)
        else:
            return
        if self._is_failing():
            self._open("trip", now)

    def _is_failing(self) -> bool:
        options = self._options
        if self._run >= options.faults_in_a_row:
            return True
        ok, faults, slow, rejected = self.window.totals
        outcomes = ok + faults + rejected
        if outcomes < options.outcomes_min:
            return False
        return (
            faults / outcomes >= options.error_ratio
            or slow / outcomes >= options.slow_ratio
            or (options.rejected_ratio is not None and rejected / outcomes >= options.rejected_ratio)
        )

    def _judge(self, trial: Pass, result: Result, now: float, *, slow: bool) -> None:
        del self._trials[trial]
        if result == "fault" or slow:
            self._open("trial_failed", now)
        elif result == "ok":
            self._good_row += 1
            if self._good_row >= self._options.successes_to_close:
                self._move("recovered", now)
                self.window.clear()
                self._run = 0
        elif result == "rejected" and self._options.rejected_ratio is not None:
            self._good_row = 0  # one "no" proves nothing, but it is not what would close it either

    def _open(self, event: Event, at: float) -> None:
        options = self._options
        rested = self.state == "closed" and at - self.since >= options.window_s
        fresh = rested or self.openings == 0
        self._move(event, at)
        self._wait_s = options.open_s if fresh else min(2 * self._wait_s, options.open_max_s)
        self._until = at + self._wait_s * (1 + options.open_spread * (2 * self._draw() - 1))
        self.openings += 1
        if self._on_open is not None:
            self._on_open(self._until)

    def _move(self, event: Event, at: float) -> None:
        self.state = step(TABLE, self.state, event)
        self.since = at
        self._era += 1
        self._trials.clear()
        self._good_row = 0
