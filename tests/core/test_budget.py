"""The retry budget by example."""

from __future__ import annotations

from math import nan

import pytest

from agentgate.core.budget import IDLE_S, TARGETS_MAX, BudgetOptions, RetryBudget


def takes(budget: RetryBudget, now: float, tries: int = 100) -> int:
    return sum(budget.take("b", now) for _ in range(tries))


def test_a_budget_starts_full_and_runs_out() -> None:
    """B5: twenty retries can be planned at once, whoever asks, and not one more."""
    budget = RetryBudget(BudgetOptions())
    assert (budget.tokens("b", 0.0), len(budget)) == (20.0, 0)
    assert takes(budget, 0.0) == 20
    assert budget.tokens("b", 0.0) == 0.0


def test_successes_pay_for_retries() -> None:
    """B5: ten successes bring one retry, and never more than a full budget."""
    budget = RetryBudget(BudgetOptions(per_success=0.125))
    takes(budget, 0.0)
    for _ in range(7):
        budget.success("b", 1.0)
    assert not budget.take("b", 1.0)
    budget.success("b", 1.0)
    assert takes(budget, 1.0) == 1
    for _ in range(1000):
        budget.success("b", 2.0)
    assert takes(budget, 2.0) == 20


def test_an_empty_budget_lets_one_through_in_ten_seconds() -> None:
    """B5: an idle target can still be tried, once per floor time counted from the last retry."""
    budget = RetryBudget(BudgetOptions())
    takes(budget, 0.0)
    assert takes(budget, 9.9) == 0
    assert budget.tokens("b", 10.0) == 1.0
    assert takes(budget, 10.0) == 1
    assert takes(budget, 19.9) == 0
    assert takes(budget, 60.0) == 1


def test_a_retry_that_was_not_sent_is_given_back() -> None:
    """B5: planning is what costs; giving back undoes it, and never fills beyond full."""
    budget = RetryBudget(BudgetOptions(tokens_max=2.0))
    budget.refund("b", 0.0)
    assert takes(budget, 0.0) == 2
    budget.refund("b", 0.0)
    assert takes(budget, 0.0) == 1


def test_targets_do_not_share() -> None:
    """B2: one target's retries never take from another's."""
    budget = RetryBudget(BudgetOptions())
    takes(budget, 0.0)
    assert budget.take("c", 0.0)


def test_zero_means_zero() -> None:
    """F48: no tokens and no income leave exactly the floor."""
    budget = RetryBudget(BudgetOptions(tokens_max=0.0, per_success=0.0))
    assert takes(budget, 0.0) == 0
    budget.success("b", 5.0)
    budget.refund("b", 5.0)
    assert takes(budget, 5.0) == 0
    assert takes(budget, 10.0) == 1


def test_idle_and_numerous_targets_are_forgotten() -> None:
    """F110: the map is bounded, and a target without a call for two idle times is gone."""
    budget = RetryBudget(BudgetOptions())
    for number in range(TARGETS_MAX + 5):
        budget.success(f"agent-{number}", 0.0)
    assert len(budget) == TARGETS_MAX
    budget.success("a", IDLE_S)
    budget.success("a", 2 * IDLE_S)
    assert len(budget) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("tokens_max", -1.0), ("per_success", 1.1), ("floor_s", 0.0), ("floor_s", nan)]
)
def test_options_out_of_range_are_refused(field: str, value: float) -> None:
    """A budget that bounds nothing is refused when it is read."""
    with pytest.raises(ValueError, match=f"{field} must be a number from"):
        BudgetOptions(**{field: value})
