"""What spans are counted as."""

from __future__ import annotations

import pytest

from agentgate.core import recorded as module
from agentgate.core.recorded import quantile
from tests.core.span_kit import attempt, call, recorded


def test_attempts_tell_of_their_targets() -> None:
    """I2: answers give durations without the queue, time-outs are cut, faults are counted in their window of time."""
    found = recorded(
        attempt(0, 100, queue_ms=50.0, timeout_ms=2000.0),
        attempt(1, 200, code="rejected", fault="rejected", sent=True, timeout_ms=3000.0),
        attempt(2, 300, code="deadline_exceeded", fault="unreachable", sent=True),
        attempt(3, 400, code="handler_error", fault="handler_error", sent=True),
        attempt(70, 5, code="breaker_open", fault="refused"),
        attempt(71, 5, code="agent_lost", fault="unreachable"),
        attempt(72, 5, code="strange", fault="of a later version"),
    )
    target = found.targets["bank", "pay"]
    assert (target.durations, target.cut, target.longest_timeout_ms) == ([100, 200], 1, 3000)
    assert (dict(target.outcomes), dict(target.faults)) == ({0: 3, 1: 1}, {0: 2, 1: 1})
    assert (found.calls, found.attempts, found.period_s, found.left_out) == (0, 7, 72, 0)
    assert found.instances["bank", "bank-1"].waits[0] == 50


def test_calls_tell_of_senders_retries_and_what_would_have_been() -> None:
    """I2: when senders sent, at which attempt calls ended, and every `would_…` once a call."""
    found = recorded(
        attempt(0),
        call(5, attempts=3),
        call(5, at=5.9, attempts=3, status="failed", notes=("would_cut", "would_cut", "50 percent")),
        call(2, attempts=1, notes=("would_cut",)),
        call(1, attempts=0, agent="", notes=("would_open",), status="refused"),
    )
    assert dict(found.senders["default", "shop"].calls) == {5: 2, 2: 1, 1: 1}
    assert (dict(found.reached), dict(found.ended_well)) == ({1: 3, 2: 2, 3: 2}, {3: 1, 1: 1})
    assert (found.would["would_cut"], found.would_but_done["would_cut"], found.would["would_open"]) == (2, 1, 1)
    assert dict(found.would_at["bank"]) == {"would_cut": 2}
    assert (found.first_at, found.last_at) == (0.0, 5.9)


def test_how_many_ran_at_once() -> None:
    """I2: the most intervals that overlap; one that ends when another begins does not."""
    spans = [attempt(n, took, at=at) for n, (at, took) in enumerate([(0, 1000), (0.5, 1000), (1.0, 500), (1.5, 10)])]
    assert recorded(*spans).instances["bank", "bank-1"].most_at_once() == 2
    assert module.Runs().most_at_once() == 0


def test_names_and_samples_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """B14: names come from elsewhere; beyond the bound newcomers are left out, and that is counted."""
    monkeypatch.setattr(module, "NAMES_MAX", 2)
    monkeypatch.setattr(module, "SAMPLES_MAX", 3)
    found = recorded(
        *(attempt(n, agent=f"a{n}") for n in range(5)), *(attempt(n, agent="a0") for n in range(5)),
        *(call(n, caller=f"c{n}", notes=("would_open",), agent=f"a{n}") for n in range(5)),
    )  # fmt: skip
    assert (len(found.targets), len(found.instances), len(found.senders), found.left_out) == (2, 2, 2, 9)
    assert len(found.targets["a0", "pay"].durations) == len(found.instances["a0", "bank-1"].intervals) == 3
    assert set(found.would_at) == {"a0", "a1"}
    assert found.would["would_open"] == 5


def test_a_quantile_is_one_of_the_values() -> None:
    """The smallest value that the share does not exceed."""
    values = [float(number) for number in range(1, 101)]
    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 51, 100, 100]
    assert quantile([7.0], 0.5) == 7
