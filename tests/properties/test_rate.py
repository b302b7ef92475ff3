"""What the rate promises over any traffic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.policy import Admit, Park, Ticket
from agentgate.core.rate import RateLimiter, RateOptions
from agentgate.model import Call

OPTIONS = st.builds(
    RateOptions,
    rate_per_s=st.sampled_from([0.5, 3.0, 7.0, 200.0]),
    burst=st.integers(min_value=1, max_value=5),
    parked_max=st.integers(min_value=0, max_value=4),
)
STARTS = st.sampled_from([0.0, 12345.678, 7.7e6])  # a machine may have been up for months
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "admit", "admit", "abandon", "shadow"]),
        st.floats(min_value=0.0, max_value=3.0) | st.just(0.0),  # in intervals
        st.floats(min_value=0.0, max_value=9.0),
    ),
    max_size=80,
)


class Sender:
    """One sender's traffic through a limiter, woken exactly when the limiter asks for it."""

    def __init__(self, options: RateOptions, start: float) -> None:
        self.policy = RateLimiter(options)
        self.interval = 1.0 / options.rate_per_s
        self.now = start
        self.passed: list[float] = []
        self.parked: dict[Ticket, float] = {}

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (due := self.policy.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.tick()
        self.now = end
        self.tick()

    def tick(self) -> None:
        for ticket, decision in self.policy.tick(self.now):
            assert isinstance(decision, Admit)
            assert ticket is next(iter(self.parked)), "first come, first served"
            until = self.parked.pop(ticket)
            assert self.now <= until + 1e-6, "no later than promised"
            assert until < ticket.call.deadline
            self.passed.append(self.now)

    def admit(self, deadline: float) -> None:
        decision = self.policy.admit(Call(id="c", target="b", task_type="t", deadline=deadline), self.now)
        if isinstance(decision, Admit):
            assert not self.parked
            self.passed.append(self.now)
        elif isinstance(decision, Park):
            self.parked[decision.ticket] = decision.until

    def shadow(self) -> None:
        if not self.policy.shadow(Call(id="c", target="b", task_type="t", deadline=1e9), self.now).would:
            self.passed.append(self.now)


@given(OPTIONS, STARTS, STEPS)
def test_any_window_holds_the_limit_and_everybody_gets_a_turn(
    options: RateOptions, start: float, steps: list[tuple[str, float, float]]
) -> None:
    """B1, F109: at most burst + rate * window pass in any window; the parked pass in order, by the promised time."""
    sender = Sender(options, start)
    for step, intervals, margin in steps:
        sender.wait(intervals * sender.interval)
        if step == "admit":
            sender.admit(sender.now + margin * sender.interval)
        elif step == "shadow":
            sender.shadow()
        elif sender.parked:
            ticket = list(sender.parked)[int(margin) % len(sender.parked)]
            del sender.parked[ticket]
            sender.policy.abandon(ticket, sender.now)
        assert len(sender.parked) <= options.parked_max
    sender.wait(10 * sender.interval)
    assert not sender.parked
    for first, began in enumerate(sender.passed):
        for last in range(first, len(sender.passed)):
            window = sender.passed[last] - began + 1e-5
            assert last - first + 1 <= options.burst + options.rate_per_s * window


def test_steady_traffic_at_the_rate_passes_undelayed() -> None:
    """F102, F109: 10/s under a limit of 10/s for an hour: nobody waits, nobody is refused, nothing drifts."""
    policy = RateLimiter(RateOptions(rate_per_s=10.0, burst=1, parked_max=0))
    start = 3.3e6
    for number in range(36_000):
        call = Call(id="c", target="b", task_type="t", deadline=1e9)
        assert isinstance(policy.admit(call, start + number / 10), Admit)
