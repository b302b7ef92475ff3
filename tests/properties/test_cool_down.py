"""What the cool-down promises over any course of events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.cool_down import CoolDown, CoolDownOptions
from agentgate.core.policy import Admit, Park, Ticket
from agentgate.model import Call, Outcome, Problem

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["admit", "throttle", "abandon", "wait"]),
        st.sampled_from(["a", "b"]),
        st.integers(min_value=0, max_value=8),
    ),
    max_size=60,
)


def made(agent: str, deadline: float = 1e9) -> Call:
    return Call(id="c", target=agent, task_type="t", agent=agent, deadline=deadline)


@given(STEPS)
def test_nobody_enters_early_and_nobody_is_forgotten(steps: list[tuple[str, str, int]]) -> None:
    """F46, F47: no call passes before the latest end named; every parked one is woken once, by its deadline."""
    policy = CoolDown(CoolDownOptions(parked_max=3))
    ends = {"a": 0.0, "b": 0.0}
    parked: list[Ticket] = []
    now = 0.0
    for step, agent, seconds in steps:
        if step == "throttle":
            error = Problem(code="rate_limited", fault="throttled", retry_after_ms=seconds * 1000)
            policy.settle(Ticket(made(agent)), Outcome(error=error), now)
            ends[agent] = max(ends[agent], now + seconds)
        elif step == "admit":
            decision = policy.admit(made(agent, now + seconds + 1), now)
            assert isinstance(decision, Admit) == (ends[agent] <= now)
            if isinstance(decision, Park):
                assert decision.until == ends[agent] < decision.ticket.call.deadline
                parked.append(decision.ticket)
        elif step == "abandon" and parked:
            policy.abandon(parked.pop(seconds % len(parked)), now)
        elif step == "wait":
            now += seconds
        for ticket, woken in policy.tick(now):
            parked.remove(ticket)
            assert isinstance(woken, Admit) == (ends[ticket.call.agent] <= now)
        due = policy.next_deadline()
        assert all(ends[ticket.call.agent] > now for ticket in parked)
        assert not parked or (due is not None and due <= min(ends[ticket.call.agent] for ticket in parked))
