"""Callers whose limits are below the gate's, by example."""

from __future__ import annotations

import pytest

from agentgate.core.patience import CALLERS_MAX, LEAVES, Leaving, Patience, is_too_short
from agentgate.model import Call


def call(at: float = 0.0, caller: str = "shop", *, patience_s: float = 0.0, attempt: int = 1) -> Call:
    return Call(
        id="c",
        target="bank",
        task_type="pay",
        caller=caller,
        received_at=at,
        deadline=at + 30.0,
        patience_s=patience_s,
        attempt=attempt,
    )


def leave(patience: Patience, times: list[float], every_s: float = 10.0) -> list[Leaving | None]:
    return [patience.left(call(number * every_s), number * every_s + waited) for number, waited in enumerate(times)]


def test_leaving_always_after_the_same_time_is_a_hidden_limit() -> None:
    """B7: five times in a row after about three seconds, while the gate would have gone on for thirty."""
    found = leave(Patience(), [3.0, 3.01, 3.02, 2.98, 3.0, 3.0])
    assert found[: LEAVES - 1] == [None] * (LEAVES - 1)
    assert found[LEAVES - 1] == pytest.approx(Leaving(3.0, 30.0))
    assert found[LEAVES] is not None


@pytest.mark.parametrize(
    ("times", "every_s"),
    [([3.0, 1.0, 7.0, 2.0, 9.0, 4.0], 10.0), ([0.01] * 10, 10.0), ([3.0] * 10, 200.0)],
    ids=["people", "no use for the call", "long ago"],
)
def test_leaving_now_and_then_is_none(times: list[float], every_s: float) -> None:
    """B7: people give up at any time, some calls are not needed after all, and what was long ago does not count."""
    assert not any(leave(Patience(), times, every_s))


def test_callers_are_told_apart_and_forgotten() -> None:
    """F110: each caller by itself, in a bounded map that is swept."""
    patience = Patience()
    for number in range(CALLERS_MAX + 10):
        assert patience.left(call(0.0, f"caller-{number}"), 3.0) is None
    assert len(patience) == CALLERS_MAX
    for at in (10_000.0, 20_000.0):
        patience.left(call(at, f"late-{at}"), at + 3.0)
    assert len(patience) < 10


@pytest.mark.parametrize(
    ("patience_s", "attempt", "short"), [(0.0, 1, False), (1.0, 1, True), (2.0, 1, False), (1.0, 2, False)]
)
def test_less_than_the_target_usually_takes_is_too_short(patience_s: float, attempt: int, short: bool) -> None:
    """B7: only what the caller said counts, and once a call."""
    assert is_too_short(call(patience_s=patience_s, attempt=attempt), 2.0) is short
