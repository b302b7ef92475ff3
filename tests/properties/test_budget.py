"""What the budget promises over any course of events."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.budget import BudgetOptions, RetryBudget

EVENTS = st.lists(
    st.tuples(st.sampled_from(["take", "take", "success", "refund"]), st.floats(min_value=0.0, max_value=30.0)),
    max_size=200,
)


@given(EVENTS, st.floats(min_value=0.0, max_value=5.0))
def test_retries_stay_within_what_successes_pay_for(events: list[tuple[str, float]], tokens_max: float) -> None:
    """B5: in any window, retries less those given back ≤ a full budget + a tenth of successes + one in 10 s + one."""
    options = BudgetOptions(tokens_max=tokens_max)
    budget = RetryBudget(options)
    now, open_retries, successes, granted, given_back = 0.0, 0, 0, 0, 0
    for event, wait in events:
        now += wait
        if event == "take":
            taken = budget.take("b", now)
            granted += taken
            open_retries += taken
        elif event == "success":
            budget.success("b", now)
            successes += 1
        elif open_retries:
            open_retries -= 1
            given_back += 1
            budget.refund("b", now)
        bound = options.tokens_max + options.per_success * successes + now / options.floor_s + 1.0
        assert granted - given_back <= bound + 1e-6
        assert 0.0 <= budget.tokens("b", now) <= max(options.tokens_max, 1.0)


def test_an_outage_ends_its_retries_whatever_the_number_of_callers() -> None:
    """F24: 200 callers of a dead target for a minute retry at most 20 + 6 times, not 200 times per second."""
    budget = RetryBudget(BudgetOptions())
    granted = sum(budget.take("b", second) for second in range(60) for _ in range(200))
    assert granted <= 26
