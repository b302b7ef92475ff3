"""Who is there: the table, the times, and what no order of events may break."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.presence import TABLE, Event, Presence, PresenceOptions, State
from agentgate.core.table import IllegalTransition

OPTIONS = PresenceOptions()
STATES: tuple[State, ...] = get_args(State)
EVENTS: tuple[Event, ...] = get_args(Event)

# The shortest way into each state.
WAYS: dict[State, tuple[Event, ...]] = {
    "connected": (),
    "draining": ("drain",),
    "away": ("closed",),
    "leaving": ("drain", "closed"),
    "lost": ("gone",),
}


def in_state(state: State) -> Presence:
    presence = Presence(OPTIONS, 100.0, expected=state == "expected")
    for event in WAYS.get(state, ()):
        presence.hear(event, 100.0)
    assert presence.state == state
    return presence


@pytest.mark.parametrize(("state", "event"), [pair for pair in product(STATES, EVENTS) if pair in TABLE])
def test_a_known_event_follows_the_table(state: State, event: Event) -> None:
    """Every pair of the table leads where the table says, and `since` moves only with the state."""
    presence = in_state(state)
    after = presence.hear(event, 101.0)
    assert after == presence.state == TABLE[state, event]
    assert presence.since == (100.0 if after == state else 101.0)


@pytest.mark.parametrize(("state", "event"), [pair for pair in product(STATES, EVENTS) if pair not in TABLE])
def test_an_unknown_event_raises_and_changes_nothing(state: State, event: Event) -> None:
    """A pair that is not in the table is a defect: it raises, and neither state nor times move."""
    presence = in_state(state)
    before = (presence.state, presence.since, presence.heard_at, presence.next_deadline())
    with pytest.raises(IllegalTransition):
        presence.hear(event, 101.0)
    assert (presence.state, presence.since, presence.heard_at, presence.next_deadline()) == before


def test_silence_then_grace_then_lost() -> None:
    """A8: connected at 100, nothing heard: away at 106, not before; lost at 109, not before, and for good."""
    presence = in_state("connected")
    assert (presence.next_deadline(), presence.tick(105.999), presence.state) == (106.0, False, "connected")
    assert (presence.tick(106.0), presence.state) == (True, "away")
    assert (presence.next_deadline(), presence.tick(108.999), presence.state) == (109.0, False, "away")
    assert (presence.tick(109.0), presence.state) == (True, "lost")
    assert (presence.next_deadline(), presence.tick(1e9)) == (None, False)


def test_a_closed_link_is_away_at_once() -> None:
    """A8: a link closed at 100 makes the instance away at 100 and lost at 103; back before that, it is connected."""
    presence = in_state("connected")
    presence.hear("closed", 100.0)
    assert (presence.state, presence.next_deadline()) == ("away", 103.0)
    presence.hear("hello", 102.9)
    assert (presence.state, presence.next_deadline()) == ("connected", 108.9)


def test_any_frame_puts_silence_off() -> None:
    """A8: a frame every two seconds keeps an instance connected for ever, and `heard` says nothing else is to do."""
    presence = in_state("connected")
    for second in range(102, 1_000, 2):
        assert presence.heard(float(second))
        assert not presence.tick(float(second))
    assert presence.next_deadline() == 1_004.0


def test_a_silent_instance_that_speaks_is_back() -> None:
    """A frame of an instance that is away asks for `hear`, and with it the instance is connected again."""
    presence = in_state("connected")
    presence.tick(106.0)
    assert not presence.heard(107.0)
    assert presence.hear("beat", 107.0) == "connected"
    assert presence.next_deadline() == 113.0


def test_what_is_remembered_from_before_a_restart_is_expected_for_ten_seconds() -> None:
    """A8: a gate starts at 100: a remembered instance is lost at 110 unless it says hello; a refused one is no sign."""
    presence = in_state("expected")
    presence.hear("closed", 105.0)
    assert (presence.state, presence.next_deadline(), presence.tick(109.999)) == ("expected", 110.0, False)
    assert (presence.tick(110.0), presence.state) == (True, "lost")


def test_draining_is_a_one_way_street() -> None:
    """A6: an instance that drains, loses its link and comes back is still draining."""
    presence = in_state("draining")
    assert presence.hear("closed", 101.0) == "leaving"
    assert presence.hear("hello", 102.0) == "draining"
    assert presence.tick(108.0)
    assert presence.state == "leaving"


@given(
    st.lists(st.tuples(st.sampled_from(EVENTS), st.floats(0.0, 20.0)), max_size=40),
    st.booleans(),
)
def test_no_history_makes_an_instance_immortal(history: list[tuple[Event, float]], expected: bool) -> None:
    """A8: after any history, an instance that falls silent is lost within silence plus grace, or its time as expected.

    And on the way: once it drains it never takes calls again.
    """
    presence, now, drained = Presence(OPTIONS, 0.0, expected=expected), 0.0, False
    for event, pause in history:
        now += pause
        presence.tick(now)
        if (presence.state, event) in TABLE:
            presence.hear(event, now)
        drained = drained or presence.state in ("draining", "leaving")
        assert not (drained and presence.state in ("connected", "away"))
    end = now + max(OPTIONS.silent_s + OPTIONS.grace_s, OPTIONS.expected_s)
    while (deadline := presence.next_deadline()) is not None:
        assert deadline <= end
        assert presence.tick(deadline)
    assert presence.state == "lost"


@pytest.mark.parametrize("name", ["beat_s", "silent_s", "grace_s", "expected_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_times_must_be_positive_and_finite(name: str, value: float) -> None:
    """F26: every time is a positive, finite number; the sentence names the option and the value."""
    with pytest.raises(ValueError, match=rf"{name} must be a number at least 0.001, not {value}"):
        PresenceOptions(**{name: value})


def test_silence_must_outlast_a_late_beat() -> None:
    """A silence shorter than two beats is refused; exactly two is allowed."""
    with pytest.raises(ValueError, match=r"silent_s \(3\.9\) must be at least 2 times beat_s \(2\)"):
        PresenceOptions(silent_s=3.9)
    assert PresenceOptions(silent_s=4.0).silent_s == 4.0
