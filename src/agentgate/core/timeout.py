"""How long one attempt may take, learnt from how long answers take.

What is decided: the time-out of an attempt, per agent, task type and whether the caller declared it heavy.

Rules. `P95 of the last 100 * 1.6, spread by 15 % either way, between 2 s and 30 s` (120 s for heavy work), as soon as
20 answers are known and the first calls have had their time: the first answers of a busy agent are its fastest. Until
then, and always when learning is switched off: what the skill declares, else 10 s. A declared time is also the upper
limit, in place of 30 and 120 s. The spread keeps two sides from coming back in step (REQUIREMENTS D5), also before
anything is known; a declared time is spread upward only, for honest work may take all of it. Switched off, nothing is
spread.

The plain rule has two defects. When calls hang, their time-outs become the samples, and the time-out climbs to its
limit exactly when it is needed. When only answers count, work that takes longer is cut for ever, and nobody finds
out. So (FAILURES M, F112 to F114):

- An attempt that was cut is a censored sample (`core.durations`): above every duration, until its answer comes late.
- More than 5 % of them are a *crowd*. In a crowd the P95 is that of the answered, and it does not grow by more than a
  tenth unless there is proof: an answer that came after the time-out. A crowd is over at a fifth of that share.
- A write goes on after its time-out, so its late answer is proof by itself. A read is cancelled. So one call in 70
  *explores*: it gets twice the time, the next one four times after a cut, and so on up to the limit. An explorer that
  is answered after the plain time-out speaks for those that were cut: they are taken to have lasted as long, in the
  share that such explorers have among all that had the whole time. Hangs never get an answer, and move nothing.
- After five cuts in a row the time-out itself is suspect, and every fourth call explores: few calls pass an open
  breaker, and some of them must be able to find out that the target is slow, not dead.
- The estimate follows the answered upward at once. Downward, and upward for the sake of the censored, it goes slowly
  (half-way in some 50 samples), because P95 of 100 samples swings by a factor when a twelfth of the work is heavy, and
  because the first hangs of an outage come before it is a crowd. From 5 s back to 0.1 s takes less than two windows.

How it works. A plan is the ticket of one attempt: `answered`, or `cut` and perhaps `late`, is told about it. An
attempt that its own call's deadline cut sooner than `fair_s` says nothing about the target and is not told. Only
answers are told, a business "no" included; how fast errors come says nothing about how long work takes.

Not covered: the call's deadline (the stage takes the smaller of both), and what a time-out means (`core.attempts`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from msgspec import Struct

from agentgate.core.bounded import BoundedMap
from agentgate.core.durations import Durations
from agentgate.core.ranges import require
from agentgate.model import Call

PERCENT: Final = 95
TARGETS_MAX: Final = 5_000  # of some 5 KB each
IDLE_S: Final = 86_400.0  # a nightly batch finds what it learnt the night before
# Of the way, per sample. At 1 a twelfth of heavy work has 1.5 % false time-outs, at 0.015 half as many.
PACE: Final = 0.015
SWING: Final = 1.1  # P95 of 100 samples wanders by so much without any cause
CALM: Final = 0.2  # of the share that makes a crowd; between the two it stays what it was
REACH_MIN: Final = 2.0  # times the plain time-out that an explorer gets
SUSPECT_CUTS: Final = 5  # in a row; as many as open a breaker
SUSPECT_TIMES: Final = 16.0  # as often as usual do calls explore then
VERDICTS_MAX: Final = 16  # explorers remembered; more would make the judgement slow to change


@dataclass(frozen=True, kw_only=True)
class TimeoutOptions:
    """The bounds of attempt time-outs, and how they are learnt."""

    # REQUIREMENTS B8. Below 1.4 the swing of P95 alone cuts honest work; above 2 hangs hold callers for nothing.
    safety_factor: float = 1.6
    # Below 2 s a pause of the runtime or the network looks like a hang.
    min_s: float = 2.0
    # The root deadline. A target that needs more declares it.
    max_s: float = 30.0
    # For calls declared heavy: REQUIREMENTS B8. Below `max_s` it has no effect.
    heavy_max_s: float = 120.0
    # REQUIREMENTS B7: while too little is known. Kept between the limits.
    default_s: float = 10.0
    # REQUIREMENTS B8: enough for a P95, few enough to follow within minutes.
    window: int = 100
    # The first number for which P95 is not simply the longest.
    samples_min: int = 20
    # REQUIREMENTS D5: 6 s against 8 s.
    spread: float = 0.15
    # What P95 leaves above itself; more is an outage, and the breaker's business.
    censored_share_max: float = 0.05
    # Between 1 and 2 %: seldom enough not to be felt, often enough to learn within minutes. 0: never.
    explore_share: float = 0.015

    def __post_init__(self) -> None:
        require(self, "safety_factor", low=1.0, high=10.0)
        require(self, "min_s", "max_s", "heavy_max_s", "default_s", low=0.001, high=3600.0)
        require(self, "window", low=20, high=10_000)
        require(self, "samples_min", low=1, high=10_000)
        require(self, "spread", "censored_share_max", "explore_share", high=0.5)
        if self.min_s > self.max_s:
            raise ValueError(f"min_s must be at most max_s ({self.max_s:g}), not {self.min_s:g}")
        if self.samples_min > self.window:
            raise ValueError(f"samples_min must be at most window ({self.window}), not {self.samples_min}")


class _Estimate:
    """What is known about one kind of call."""

    __slots__ = (
        "ceiling_s",
        "crowded",
        "cuts_in_row",
        "durations",
        "honest",
        "hung",
        "learnt",
        "options",
        "p95_s",
        "reach",
        "since",
    )

    def __init__(self, options: TimeoutOptions, now: float) -> None:
        self.options = options
        self.since = now
        self.durations = Durations(options.window)
        self.p95_s = -1.0  # below 0: too few answers so far
        self.learnt = False  # `p95_s` is in force
        self.crowded = False
        self.ceiling_s = inf  # of `p95_s` in a crowd
        self.cuts_in_row = 0
        self.reach = REACH_MIN
        self.honest = 0  # explorers answered after the plain time-out
        self.hung = 0  # explorers that had the whole time and were cut

    def update(self, *, proof: bool = False) -> None:
        """Take the window's new content into account; `proof`: a cut attempt turned out to be honest work."""
        known, censored = len(self.durations.known), len(self.durations.censored)
        if censored or self.crowded:
            self._judge_crowd(censored / (known + censored))
        if known < self.options.samples_min:
            return
        answered_s = wanted_s = self.durations.quantile(PERCENT, known)
        if self.crowded:
            if proof:
                self.ceiling_s = max(self.ceiling_s, answered_s)
            answered_s = wanted_s = min(answered_s, self.ceiling_s)
        elif censored:
            wanted_s = self.durations.quantile(PERCENT, known + censored)
        self.p95_s = max(answered_s, self.p95_s + (wanted_s - self.p95_s) * PACE) if self.learnt else answered_s

    def vouch(self, duration_s: float) -> None:
        """An explorer was answered after the plain time-out."""
        self._count_verdict(honest=1)
        self.durations.resolve_share(self.honest / (self.honest + self.hung), duration_s)

    def give_up(self, plan: TimeoutPlan) -> None:
        """An explorer was cut."""
        if self.reach * plan.plain_s < plan.high_s:
            self.reach *= 2.0
        else:
            self._count_verdict(hung=1)

    def _count_verdict(self, *, honest: int = 0, hung: int = 0) -> None:
        if self.honest + self.hung >= VERDICTS_MAX:
            self.honest //= 2
            self.hung //= 2
        self.honest += honest
        self.hung += hung

    def _judge_crowd(self, share: float) -> None:
        limit = self.options.censored_share_max
        if self.crowded and share <= limit * CALM:
            self.crowded = False
            self.reach, self.honest, self.hung = REACH_MIN, 0, 0
        elif not self.crowded and share > limit:
            self.crowded = True
            self.ceiling_s = self.p95_s * SWING if self.learnt else inf


class TimeoutPlan(Struct, eq=False):
    """One attempt's time-out, and afterwards the ticket by which its end is told."""

    estimate: _Estimate
    timeout_s: float  # the attempt is cut after this time
    plain_s: float  # what it would be without exploring
    fair_s: float  # the target usually answers by then; a shorter deadline is the caller's
    high_s: float
    explored: bool = False
    number: int | None = None  # of its censored sample


class Timeouts:
    """The time-outs of all targets; `draw` gives floats in [0, 1), `fixed` switches learning off."""

    __slots__ = ("_draw", "_estimates", "_fixed", "_heavy_limits", "_options", "_usual_limits")

    def __init__(self, options: TimeoutOptions, draw: Callable[[], float], *, fixed: bool = False) -> None:
        self._options = options
        self._draw = draw
        self._fixed = fixed
        first_s = max(options.default_s, options.min_s)
        heavy_max_s = max(options.max_s, options.heavy_max_s)
        self._usual_limits = options.max_s, min(first_s, options.max_s)
        self._heavy_limits = heavy_max_s, min(first_s, heavy_max_s)
        self._estimates: BoundedMap[tuple[str, str, bool], _Estimate] = BoundedMap(TARGETS_MAX)

    def __len__(self) -> int:
        return len(self._estimates)

    def plan(self, call: Call, now: float) -> TimeoutPlan:
        """The time-out of an attempt that begins now."""
        options = self._options
        estimate = self._estimate(call, now)
        high_s, first_s = self._limits(call)
        if not estimate.learnt and estimate.p95_s >= 0.0 and now >= estimate.since + first_s:
            estimate.learnt = True
        if self._fixed:
            return TimeoutPlan(estimate, first_s, first_s, min(options.min_s, first_s), high_s)
        swing = options.spread * self._draw()  # from nothing to the whole
        is_declared = call.skill_timeout_s is not None
        if is_declared:
            high_s *= 1.0 + swing
        if estimate.learnt:
            plain_s = self._spread(estimate.p95_s * options.safety_factor, high_s, swing)
            fair_s = min(estimate.p95_s, plain_s)
        else:
            plain_s = high_s if is_declared else self._spread(first_s, high_s, swing)
            fair_s = min(options.min_s, first_s)
        plan = TimeoutPlan(estimate, plain_s, plain_s, fair_s, high_s)
        self._explore(plan, call.deadline - now)
        return plan

    def answered(self, plan: TimeoutPlan, duration_s: float) -> None:
        """The attempt was answered, within its time-out or (its deadline having been shorter) after it."""
        estimate = plan.estimate
        estimate.cuts_in_row = 0
        proof = plan.explored and duration_s > plan.plain_s
        if proof:
            estimate.vouch(duration_s)
        estimate.durations.add(duration_s)
        estimate.update(proof=proof)

    def cut(self, plan: TimeoutPlan, duration_s: float) -> None:
        """The attempt had so much time and no answer came."""
        if duration_s < plan.fair_s:
            return
        estimate = plan.estimate
        estimate.cuts_in_row += 1
        if plan.explored:
            estimate.give_up(plan)
        plan.number = estimate.durations.add_censored()
        estimate.update()

    def late(self, plan: TimeoutPlan, duration_s: float) -> None:
        """The answer of an attempt that was cut; counts once."""
        if plan.number is None:
            return
        estimate = plan.estimate
        estimate.cuts_in_row = 0
        estimate.durations.resolve(plan.number, duration_s)
        plan.number = None
        estimate.update(proof=True)

    def p95_s(self, agent: str, task_type: str, *, heavy: bool = False) -> float | None:
        """The estimate in force, for display; None while too little is known."""
        estimate = self._estimates.peek((agent, task_type, heavy))
        return estimate.p95_s if estimate is not None and estimate.learnt else None

    def _estimate(self, call: Call, now: float) -> _Estimate:
        key = (call.agent, call.task_type, call.heavy)
        estimate = self._estimates.get(key)
        if estimate is None:
            self._estimates.sweep(now, IDLE_S)
            estimate = self._estimates[key] = _Estimate(self._options, now)
        return estimate

    def _limits(self, call: Call) -> tuple[float, float]:
        """The upper limit, and the time-out before anything is known."""
        declared_s = call.skill_timeout_s
        if declared_s is not None:
            return declared_s, declared_s
        return self._heavy_limits if call.heavy else self._usual_limits

    def _spread(self, wanted_s: float, high_s: float, swing: float) -> float:
        options = self._options
        spread_s = wanted_s * (1.0 - options.spread + 2.0 * swing)
        # Upward from the lower limit too, where the time-outs of all quick targets would be the same.
        return min(max(spread_s, options.min_s * (1.0 + swing)), high_s)

    def _explore(self, plan: TimeoutPlan, remaining_s: float) -> None:
        """Let a few calls have more time, if one plain attempt still fits in after it."""
        estimate = plan.estimate
        share = self._options.explore_share
        if estimate.cuts_in_row >= SUSPECT_CUTS:
            share *= SUSPECT_TIMES
        if self._draw() < share:
            longer_s = min(plan.plain_s * estimate.reach, plan.high_s, remaining_s - plan.plain_s)
            if longer_s > plan.plain_s:
                plan.timeout_s = longer_s
                plan.explored = True
