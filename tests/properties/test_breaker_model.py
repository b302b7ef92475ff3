"""A breaker against the plainest program that obeys the same rules, over random histories."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentgate.core.breaker import Breaker, BreakerOptions, Pass, Result, State
from agentgate.core.breaker_window import BUCKETS

RESULTS: st.SearchStrategy[Result] = st.sampled_from(["ok", "fault", "rejected", "neutral"])
MOMENTS = st.sampled_from([0.0, 0.5, 1.0, 4.5, 5.0, 9.0, 10.0, 30.0, 60.0, 200.0])


@dataclass
class Entered:
    """A call in the model: nothing but what happened to it and when."""

    era: int
    at: float
    heavy: bool
    expires_at: float = inf
    result: str = ""
    counted_at: float = -inf
    retracted: bool = False


@dataclass
class Model:
    """Recounts everything from the list of calls whenever it is asked."""

    options: BreakerOptions
    state: State = "closed"
    since: float = 0.0
    era: int = 0
    until: float = 0.0
    wait_s: float = 0.0
    openings: int = 0
    good: int = 0
    calls: list[Entered] = field(default_factory=list)

    def trials(self) -> list[Entered]:
        return [call for call in self.calls if call.era == self.era and not call.result and self.state == "half_open"]

    def counted(self) -> list[Entered]:
        return [call for call in self.calls if call.era == self.era and call.counted_at > -inf and not call.retracted]

    def in_window(self, now: float, *results: str) -> int:
        width = self.options.window_s / BUCKETS
        return sum(
            call.result in results and int(call.counted_at / width) > int(now / width) - BUCKETS
            for call in self.counted()
        )

    def run(self) -> int:
        run = 0
        for call in sorted(self.counted(), key=lambda call: self.order.index(id(call))):
            run = run + 1 if call.result == "fault" else 0 if call.result in ("ok", "slow") else run
        return run

    order: list[int] = field(default_factory=list)

    def move(self, state: State, at: float) -> None:
        self.state, self.since, self.era, self.good = state, at, self.era + 1, 0

    def open(self, at: float) -> None:
        fresh = self.openings == 0 or (self.state == "closed" and at - self.since >= self.options.window_s)
        self.wait_s = self.options.open_s if fresh else min(2 * self.wait_s, self.options.open_max_s)
        self.until = at + self.wait_s
        self.openings += 1
        self.move("open", at)

    def pass_time(self, now: float) -> None:
        expiries = [call.expires_at for call in self.trials()]
        if expiries and min(expiries) <= now:
            self.open(min(expiries))
        if self.state == "open" and self.until <= now:
            self.move("half_open", self.until)

    def may_enter(self, now: float, *, light: bool) -> bool:
        self.pass_time(now)
        if self.state == "half_open":
            allowed = light or now >= self.since + self.options.light_only_s
            return allowed and len(self.trials()) < self.options.half_open_max
        return self.state == "closed"

    def enter(self, now: float, *, heavy: bool) -> Entered:
        self.pass_time(now)
        call = Entered(self.era, now, heavy)
        if self.state == "half_open":
            call.expires_at = now + (self.options.heavy_trial_timeout_s if heavy else self.options.trial_timeout_s)
        self.calls.append(call)
        return call

    def leave(self, call: Entered, result: Result, now: float) -> None:
        self.pass_time(now)
        limit_s = self.options.slow_call_s
        slow = result == "ok" and limit_s is not None and not call.heavy and now - call.at >= limit_s
        call.result = "slow" if slow else result
        if call.era != self.era:
            return
        if self.state == "half_open":
            self.judge(call.result, now)
        elif self.state == "closed" and (result in ("ok", "fault") or self.counts_rejected(result)):
            call.counted_at = now
            self.order.append(id(call))
            if call.result != "ok" and self.is_failing(now):
                self.open(now)

    def counts_rejected(self, result: str) -> bool:
        return result == "rejected" and self.options.rejected_ratio is not None

    def judge(self, result: str, now: float) -> None:
        if result in ("fault", "slow"):
            self.open(now)
        elif result == "ok":
            self.good += 1
            if self.good == self.options.successes_to_close:
                self.move("closed", now)
        elif self.counts_rejected(result):
            self.good = 0

    def is_failing(self, now: float) -> bool:
        outcomes = self.in_window(now, "ok", "slow", "fault", "rejected")
        if self.run() >= self.options.faults_in_a_row:
            return True
        limits = (
            ("fault", self.options.error_ratio),
            ("slow", self.options.slow_ratio),
            ("rejected", self.options.rejected_ratio),
        )
        return outcomes >= self.options.outcomes_min and any(
            ratio is not None and self.in_window(now, result) / outcomes >= ratio for result, ratio in limits
        )


class BreakerHistory(RuleBasedStateMachine):
    """Calls enter, leave, are retracted, and time passes, in any order."""

    @initialize(
        slow_call_s=st.sampled_from([None, 1.0]),
        rejected_ratio=st.sampled_from([None, 0.5]),
        outcomes_min=st.sampled_from([2, 4]),
        faults_in_a_row=st.sampled_from([2, 3, 9]),
    )
    def begin(self, **drawn: float) -> None:
        self.options = BreakerOptions(
            open_spread=0.0,
            half_open_max=2,
            successes_to_close=2,
            error_ratio=0.5,
            **drawn,  # type: ignore[arg-type]  # drawn from lists of the right types
        )
        self.breaker = Breaker(self.options, lambda: 0.5, 0.0)
        self.unwatched = Breaker(self.options, lambda: 0.5, 0.0)  # never looked at in between
        self.model = Model(self.options)
        self.now = 0.0
        self.inside: list[tuple[Pass, Pass, Entered]] = []
        self.outside: list[tuple[Pass, Pass, Entered]] = []

    @rule(seconds=MOMENTS)
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.breaker.advance(self.now)

    @rule(heavy=st.booleans(), observe=st.booleans())
    def enter(self, heavy: bool, observe: bool) -> None:
        refused = self.breaker.refusal(self.now, light=not heavy)
        assert (refused is None) == self.model.may_enter(self.now, light=not heavy)
        assert refused is None or refused >= 0.0
        if refused is None or observe:
            passes = (self.breaker.enter(self.now, heavy=heavy), self.unwatched.enter(self.now, heavy=heavy))
            self.inside.append((*passes, self.model.enter(self.now, heavy=heavy)))

    @rule(results=st.lists(RESULTS, min_size=1, max_size=4))
    def quick_calls(self, results: list[Result]) -> None:
        for result in results:
            before = len(self.inside)
            self.enter(heavy=False, observe=False)
            if len(self.inside) > before:
                self.end(self.inside.pop(), result)

    @rule()
    def wait_for_trials(self) -> None:
        self.now = max(self.now, self.breaker.reopens_at or 0.0)
        self.quick_calls(["ok"])

    @precondition(lambda self: self.inside)
    @rule(result=RESULTS, data=st.data())
    def leave(self, result: Result, data: st.DataObject) -> None:
        self.end(self.inside.pop(data.draw(st.integers(0, len(self.inside) - 1))), result)

    def end(self, left: tuple[Pass, Pass, Entered], result: Result) -> None:
        self.breaker.leave(left[0], result, self.now)
        self.unwatched.leave(left[1], result, self.now)
        self.model.leave(left[2], result, self.now)
        self.outside.append(left)

    @precondition(lambda self: self.outside)
    @rule(data=st.data())
    def retract(self, data: st.DataObject) -> None:
        watched, unwatched, call = self.outside[data.draw(st.integers(0, len(self.outside) - 1))]
        self.model.pass_time(self.now)
        self.breaker.retract(watched, self.now)
        self.unwatched.retract(unwatched, self.now)
        if call.result == "fault":
            call.retracted = True

    @invariant()
    def agrees_with_the_model(self) -> None:
        self.model.pass_time(self.now)
        self.breaker.advance(self.now)
        model = (self.model.state, self.model.since, self.model.openings)
        assert (self.breaker.state, self.breaker.since, self.breaker.openings) == model
        if self.model.state == "closed":
            self.breaker.window.roll(self.now)
            counts = [
                self.model.in_window(self.now, *kinds)
                for kinds in (("ok", "slow"), ("fault",), ("slow",), ("rejected",))
            ]
            assert self.breaker.window.totals == counts

    def teardown(self) -> None:
        if hasattr(self, "unwatched"):
            self.unwatched.advance(self.now)
            assert (self.unwatched.state, self.unwatched.since) == (self.breaker.state, self.breaker.since)


TestBreakerHistory = BreakerHistory.TestCase
TestBreakerHistory.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
