"""Numbers in options."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from agentgate.core.ranges import SHOWN_MAX, all_of, require


@pytest.mark.parametrize("value", [0, 0.0, 5, 10.0])
def test_values_within_bounds_pass(value: float) -> None:
    """0 is a value like any other (FAILURES F48)."""
    require(SimpleNamespace(limit=value), "limit", high=10)


@pytest.mark.parametrize("value", [None, -1, 10.5, float("nan"), float("inf"), True, "5", [1]])
def test_everything_else_is_refused_by_name(value: object) -> None:
    """The message names the option, its bounds and the value."""
    with pytest.raises(ValueError, match="limit must be a number from 0 to 10, not"):
        require(SimpleNamespace(limit=value), "limit", high=10)


def test_without_an_upper_bound_infinity_is_still_refused() -> None:
    """No option means "never ends"."""
    with pytest.raises(ValueError, match="limit must be a number at least 1, not inf"):
        require(SimpleNamespace(limit=float("inf")), "limit", low=1)


def test_off_is_a_value_only_where_it_is_offered() -> None:
    """None passes when the option may be off."""
    require(SimpleNamespace(limit=None), "limit", low=1, off=True)


def test_all_that_is_wrong_in_a_list_is_said_in_bounds() -> None:
    """One correction is enough, and a list that is wrong from end to end fills no page."""
    assert all_of(["a", "b"]) == "a; b"
    assert all_of(["x"] * (SHOWN_MAX + 2)) == "; ".join(["x"] * SHOWN_MAX) + "; and 2 more"
