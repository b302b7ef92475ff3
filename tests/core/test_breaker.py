"""One breaker: its table, what opens it, how long it waits, and what counts no more."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from agentgate.core.breaker import TABLE, Breaker, BreakerOptions, Event, Pass, Result, State
from agentgate.core.table import IllegalTransition, step
from tests.core.one_breaker import EXACT, breaker_of, feed, half_open, middle, opened_at, state_of


@pytest.mark.parametrize(("state", "event"), list(product(get_args(State), get_args(Event))))
def test_the_table_knows_four_pairs_and_refuses_the_others(state: State, event: Event) -> None:
    """B2: a breaker moves along its table only; a pair that is not in it raises."""
    if (state, event) in TABLE:
        assert step(TABLE, state, event) in get_args(State)
    else:
        with pytest.raises(IllegalTransition):
            step(TABLE, state, event)


@pytest.mark.parametrize(
    ("results", "state"),
    [
        ("ooooooofff", "open"),  # 3 of 10: "at least" 30 %
        ("oooooooff", "closed"),  # too few outcomes
        ("oooooooooff", "closed"),  # 2 of 11
        ("ffff", "closed"),
        ("fffff", "open"),  # a run needs no minimum of outcomes
        ("ffffof", "closed"),
        ("ffffnf", "open"),  # neutral neither counts nor breaks a run
        ("fffooooooo", "closed"),  # a good answer never opens it, though 3 of 10 are faults
        ("fffooooooof", "open"),
        ("n" * 50, "closed"),
        ("r" * 50, "closed"),
    ],
)
def test_what_opens_a_closed_breaker(results: str, state: State) -> None:
    """B2: it opens at 30 % faults of at least 10 outcomes, or at 5 faults in a row, and at nothing less."""
    breaker = breaker_of()
    feed(breaker, results)
    assert state_of(breaker) == state


@pytest.mark.parametrize("faults", range(6))
def test_a_ratio_of_one_can_be_met(faults: int) -> None:
    """B2: the ratio test is "at least", so a threshold of 1.0 is reached by 5 of 5 (FAILURES F38)."""
    breaker = breaker_of(BreakerOptions(error_ratio=1.0, outcomes_min=5, faults_in_a_row=100))
    feed(breaker, "o" * (5 - faults) + "f" * faults)
    assert state_of(breaker) == ("open" if faults == 5 else "closed")


@pytest.mark.parametrize(("at", "state"), [(54.9, "open"), (60.0, "closed")])
def test_faults_leave_the_window(at: float, state: State) -> None:
    """B2: the ratio is that of the last 60 s; what is older counts no more."""
    breaker = breaker_of()
    feed(breaker, "oooooooff", 0.0)
    feed(breaker, "f", at)
    assert state_of(breaker) == state


def test_slow_answers_open_it_where_that_is_configured() -> None:
    """B2: latency opens it: half of the answers slow, calls declared heavy left out."""
    options = BreakerOptions(slow_call_s=2.0)
    breaker = breaker_of(options)
    for index in range(10):
        heavy = breaker.enter(0.0, heavy=True)
        breaker.leave(heavy, "ok", 5.0)
        breaker.leave(breaker.enter(5.0), "ok", 6.9)
        slow = breaker.enter(0.0)
        assert state_of(breaker) == "closed", index
        breaker.leave(slow, "ok", 2.0)
    assert state_of(breaker) == "closed"  # 10 of 30
    for _ in range(10):
        breaker.leave(breaker.enter(0.0), "ok", 8.0)
    assert state_of(breaker) == "open"  # 20 of 40


@pytest.mark.parametrize(("configured", "state"), [(None, "closed"), (0.8, "open")])
def test_rejections_count_by_frequency_where_that_is_configured(configured: float | None, state: State) -> None:
    """B4: business refusals open it only if so configured, and then only by their share."""
    breaker = breaker_of(BreakerOptions(rejected_ratio=configured))
    feed(breaker, "oorrrrrrr")
    assert state_of(breaker) == "closed"
    feed(breaker, "r")
    assert state_of(breaker) == state


@pytest.mark.parametrize(
    ("configured", "queued", "state"), [(None, 10**6, "closed"), (50, 49, "closed"), (50, 50, "open")]
)
def test_a_backlog_opens_it_where_that_is_configured(configured: int | None, queued: int, state: State) -> None:
    """B2: backlog opens it."""
    breaker = breaker_of(BreakerOptions(backlog=configured))
    breaker.note_backlog(queued, 1.0)
    assert state_of(breaker) == state


def test_a_backlog_does_not_disturb_trials() -> None:
    """A backlog opens a closed breaker; in the other states it says nothing new."""
    breaker = half_open(BreakerOptions(open_spread=0.0, backlog=50))
    breaker.note_backlog(50, 10.0)
    assert state_of(breaker) == "half_open"


def test_late_faults_do_not_move_the_reopening() -> None:
    """B3: opens at 0, in-flight calls fail at 5, 9 and 9.9, half-open at 10 (FAILURES F36)."""
    breaker = breaker_of()
    late = [breaker.enter(0.0) for _ in range(3)]
    feed(breaker, "fffff", 0.0)
    for entered, at in zip(late, (5.0, 9.0, 9.9), strict=True):
        breaker.leave(entered, "fault", at)
        assert breaker.refusal(at) == pytest.approx(10.0 - at)
    assert breaker.refusal(10.0) is None
    assert state_of(breaker) == "half_open"


def test_refusals_never_move_the_reopening() -> None:
    """Asking an open breaker again and again changes nothing."""
    breaker = opened_at(0.0)
    for tenth in range(100):
        assert breaker.refusal(tenth / 10) == pytest.approx(10.0 - tenth / 10)
    assert breaker.reopens_at == 10.0


def test_the_open_time_doubles_up_to_a_minute() -> None:
    """B3: a target that stays down is tried after 10, 20, 40, 60, 60 s: one trial for each (FAILURES F39)."""
    breaker = opened_at(0.0)
    now = 0.0
    for wait_s in (10.0, 20.0, 40.0, 60.0, 60.0):
        refused = breaker.refusal(now)
        assert refused == pytest.approx(wait_s)
        now += wait_s
        assert breaker.refusal(now) is None
        feed(breaker, "f", now)
    assert breaker.openings == 6


@pytest.mark.parametrize(("healthy_s", "wait_s"), [(59.0, 20.0), (60.0, 10.0)])
def test_a_healthy_window_resets_the_doubling(healthy_s: float, wait_s: float) -> None:
    """B3: after a whole window closed the wait starts at 10 s again; sooner it goes on doubling: no flapping."""
    breaker = half_open()
    feed(breaker, "ooo", 10.0)
    feed(breaker, "fffff", 10.0 + healthy_s)
    assert breaker.refusal(10.0 + healthy_s) == pytest.approx(wait_s)


@pytest.mark.parametrize(("drawn", "wait_s"), [(0.0, 8.0), (0.5, 10.0), (0.999999, 12.0)])
def test_the_open_time_is_spread(drawn: float, wait_s: float) -> None:
    """B3: ± 20 %, so that breakers do not come back in step."""
    assert opened_at(0.0, BreakerOptions(), lambda: drawn).refusal(0.0) == pytest.approx(wait_s, abs=1e-4)


def test_outcomes_of_an_earlier_era_do_not_count() -> None:
    """A call that entered before the last change of state says nothing about the state now."""
    breaker = breaker_of()
    early = [breaker.enter(0.0) for _ in range(5)]
    feed(breaker, "fffff", 0.0)
    assert breaker.refusal(10.0) is None
    breaker.leave(early[0], "fault", 10.0)
    breaker.leave(early[1], "ok", 10.0)
    assert state_of(breaker) == "half_open"
    feed(breaker, "ooo", 10.0)
    for entered in early[2:]:
        breaker.leave(entered, "fault", 11.0)
    assert (state_of(breaker), breaker.window.totals) == ("closed", [0, 0, 0, 0])


def test_a_call_that_enters_an_open_breaker_says_nothing() -> None:
    """Observe mode lets calls through an open breaker; they neither hold nor count."""
    breaker = opened_at(0.0)
    entered = breaker.enter(1.0)
    breaker.leave(entered, "fault", 2.0)
    assert breaker.reopens_at == 10.0


def test_a_pass_leaves_once() -> None:
    """Leaving twice is a defect of the caller and raises."""
    breaker = breaker_of()
    entered = breaker.enter(0.0)
    breaker.leave(entered, "ok", 0.0)
    with pytest.raises(AssertionError):
        breaker.leave(entered, "ok", 0.0)


def faults(breaker: Breaker, count: int, now: float) -> list[Pass]:
    passes = [breaker.enter(now) for _ in range(count)]
    for entered in passes:
        breaker.leave(entered, "fault", now)
    return passes


def test_retracted_faults_leave_window_and_run() -> None:
    """Faults of an ejected instance are taken back, each once."""
    breaker = breaker_of()
    passes = faults(breaker, 4, 1.0)
    for entered in [*passes[:3], *passes[:3]]:
        breaker.retract(entered, 2.0)
    assert breaker.window.totals == [0, 1, 0, 0]
    faults(breaker, 3, 2.0)
    assert state_of(breaker) == "closed"  # one that stayed, and three more
    faults(breaker, 1, 2.0)
    assert state_of(breaker) == "open"


def test_retraction_does_not_touch_a_later_run() -> None:
    """A fault from before the last good answer is in the window only: taking it back leaves the new run as it is."""
    breaker = breaker_of()
    before = faults(breaker, 1, 1.0)
    feed(breaker, "o", 1.0)
    faults(breaker, 4, 1.0)
    breaker.retract(before[0], 1.0)
    faults(breaker, 1, 1.0)
    assert state_of(breaker) == "open"


def test_retraction_forgets_nothing_twice() -> None:
    """What time took out of the window cannot be taken out again."""
    breaker = breaker_of()
    old = faults(breaker, 1, 1.0)
    faults(breaker, 1, 100.0)
    breaker.retract(old[0], 100.0)
    assert breaker.window.totals == [0, 1, 0, 0]


def test_retraction_comes_too_late_for_an_open_breaker() -> None:
    """It stays open; trials will tell. Neither does it touch the counts of a later era."""
    breaker = breaker_of()
    passes = faults(breaker, 5, 0.0)
    breaker.retract(passes[0], 1.0)
    assert state_of(breaker) == "open"
    assert breaker.refusal(10.0) is None
    feed(breaker, "ooo", 10.0)
    faults(breaker, 1, 10.0)
    breaker.retract(passes[1], 10.0)
    assert breaker.window.totals == [0, 1, 0, 0]


@pytest.mark.parametrize("result", ["ok", "neutral", "rejected"])
def test_only_faults_can_be_retracted(result: Result) -> None:
    """Retracting what was no fault changes nothing."""
    breaker = breaker_of()
    entered = breaker.enter(1.0)
    breaker.leave(entered, result, 1.0)
    before = list(breaker.window.totals)
    breaker.retract(entered, 1.0)
    assert breaker.window.totals == before


def test_the_opening_is_announced() -> None:
    """Every opening, also the one after a failed trial, is told to whoever asked for it."""
    heard: list[float] = []
    breaker = Breaker(EXACT, middle, 0.0, heard.append)
    feed(breaker, "fffff", 0.0)
    feed(breaker, "f", 10.0)
    assert (heard, breaker.openings) == ([10.0, 30.0], 2)
    assert breaker.reopens_at == 30.0
    assert breaker_of().reopens_at is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"error_ratio": 0.0},
        {"error_ratio": 1.1},
        {"error_ratio": float("nan")},
        {"error_ratio": None},
        {"rejected_ratio": 0.0},
        {"window_s": 0.0},
        {"window_s": float("inf")},
        {"outcomes_min": 0},
        {"half_open_max": 0},
        {"open_spread": 1.0},
        {"slow_call_s": 0.0},
        {"backlog": 0},
        {"light_only_s": -1.0},
        {"open_s": 61.0},
        {"faults_in_a_row": True},
        {"window_s": "60"},
    ],
)
def test_options_are_checked_when_they_are_made(wrong: dict[str, float]) -> None:
    """A blank, absurd or contradictory setting is refused with its name, before a call meets it (FAILURES F26)."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BreakerOptions(**wrong)  # type: ignore[arg-type]  # wrong on purpose
