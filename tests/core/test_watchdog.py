"""Units without progress: when they are asked after, woken and given up."""

from __future__ import annotations

from typing import get_args

import pytest

from agentgate.core.open_wait import OpenWait
from agentgate.core.watchdog import SEEN_MAX, TABLE, Event, State, Step, WatchdogOptions
from agentgate.model import Outcome, failure
from tests.core.watched import Outside, Watched, call

DONE = Outcome(value={"state": "busy"})


def test_a_unit_that_says_nothing_is_asked_after_twice_its_time_and_given_up_after_once_more() -> None:
    """D7: 10 s is normal, so its process is asked at 20 s, answers, and the unit is released at 30 s; once."""
    watched = Watched()
    assert watched.look(19.9) == []
    assert watched.dog.tick(20.0) == [Step("u", "ask", 20.0)]
    assert not watched.dog.heard("u", 0.0, 20.1)
    assert watched.look(30.0) == []
    assert watched.dog.tick(30.1) == [Step("u", "release", 30.1)]
    assert watched.dog.state("u") == "released"
    assert watched.look(1e6) == []


def test_a_process_that_does_not_answer_is_none_of_the_watchdogs() -> None:
    """A8, D7: who is silent is lost by the rules of presence; the unit is not given up beside that."""
    watched = Watched()
    assert watched.look(20.0) == ["ask"]
    assert watched.look(1e6) == []


def test_a_blocked_loop_is_told_apart_and_gets_twice_the_time() -> None:
    """D7, F82: units in line behind a blocked handler are not stuck by themselves; they are given up all the same."""
    watched = Watched()
    watched.look(20.0)
    assert watched.dog.heard("u", 12.0, 20.0)
    assert not watched.dog.heard("u", 14.0, 22.0), "it is said once"
    assert watched.look(39.9) == []
    assert watched.look(40.0) == ["release"]


def test_a_loop_that_turns_out_to_be_blocked_counts_as_blocked() -> None:
    """D7: the answer to the question may have come before the lag was felt; the next beat tells."""
    watched = Watched()
    watched.look(20.0)
    assert not watched.dog.heard("u", 0.9, 20.0)
    assert watched.dog.heard("u", 1.0, 22.0)
    assert watched.look(41.9) == []
    assert watched.look(42.0) == ["release"]


def test_a_sign_of_life_is_no_progress() -> None:
    """D7: beats of a process whose unit nobody has asked after mean nothing."""
    watched = Watched()
    assert not watched.dog.heard("u", 5.0, 19.0)
    assert watched.look(20.0) == ["ask"]


@pytest.mark.parametrize("state", ["working", "asked", "stuck", "blocked", "woken"])
def test_progress_begins_the_time_anew(state: State) -> None:
    """D7: a new note takes a unit back from wherever it is, as long as it was not given up."""
    watched = in_state(state)
    watched.dog.noted("u", "3 of 10", 40.0)
    assert watched.dog.state("u") == "working"
    assert watched.look(59.9) == []
    assert watched.look(60.0) == ["ask"]


def test_what_was_given_up_stays_so() -> None:
    """D7: its callers have their answer; a late note changes nothing."""
    watched = in_state("released")
    watched.dog.noted("u", "nearly", 40.0)
    assert not watched.dog.heard("u", 60.0, 41.0)
    assert (watched.dog.state("u"), watched.look(1e6)) == ("released", [])


def test_the_same_note_again_is_no_progress() -> None:
    """D7: "still working" is a heartbeat in words."""
    watched = Watched()
    watched.dog.noted("u", "still working", 11.0)
    watched.dog.noted("u", "still working", 25.0)
    assert watched.look(31.0) == ["ask"]


def test_a_new_call_and_a_new_result_are_progress() -> None:
    """D7: a step begun and a result had; the second time each of them is nothing."""
    watched = Watched()
    one = watched.ask(call(payload=1), 15.0)
    assert one is not None
    watched.get(one, call(payload=1), DONE, 18.0)
    assert watched.look(37.9) == []
    again = watched.ask(call(payload=1), 37.9)
    assert again is not None
    watched.get(again, call(payload=1), DONE, 37.95)
    assert watched.look(38.0) == ["ask"]
    other = watched.ask(call(payload=1), 39.0)
    assert other is not None
    watched.get(other, call(payload=1), Outcome(value={"state": "done"}), 40.0)
    assert watched.dog.state("u") == "working"


def test_a_unit_that_waits_for_something_new_is_judged_by_that() -> None:
    """D7: a caller is not stuck because its target is slow; the target is watched by itself."""
    watched = Watched()
    wait = watched.ask(call(), 1.0)
    assert wait is not None
    assert watched.look(1e5) == []
    watched.get(wait, call(), failure("deadline_exceeded", sent=True), 1e5)
    assert watched.look(1e5 + 19) == []
    assert watched.look(1e5 + 20) == ["ask"]


def test_a_wait_from_before_it_was_watched_counts_as_new() -> None:
    """D7: what it asked for before its time-out is not known, and nobody is blamed for what is not known."""
    watched = Watched()
    watched.graph.open(OpenWait(unit="u", kind="call", aim=Outside()))
    assert watched.look(100.0) == []


def test_a_lock_that_was_waited_for_is_progress_once() -> None:
    """D7: it is judged by its wait, and begins anew when its turn has come; a second time for the same is nothing."""
    watched = Watched()
    for began, ended in ((5.0, 100.0), (110.0, 115.0)):
        lock = OpenWait(unit="u", kind="lock", aim=Outside(), target="stock")
        watched.graph.open(lock)
        assert watched.look(began) == watched.look(ended) == []
        watched.end(lock, ended)
    assert watched.look(119.9) == []
    assert watched.look(120.0) == ["ask"]


def test_news_that_were_waited_for_are_progress_once() -> None:
    """D7: other news, or the same about another object, are something new."""
    watched = Watched()
    asked = [("sent", "o1"), ("sent", "o2"), ("done", "o2"), ("sent", "o1")]
    for number, (name, about) in enumerate(asked):
        wait = OpenWait(unit="u", kind="signal", aim=Outside(), target="a", task_type=name, business_key=about)
        watched.graph.open(wait)
        watched.end(wait, number * 10.0)
    assert watched.look(39.9) == []
    assert watched.look(40.0) == ["ask"]


@pytest.mark.parametrize("others", [0, 1])
def test_a_wait_for_the_first_of_several_repeats_if_all_of_them_do(others: int) -> None:
    """D7, 4.4: what was started again and is awaited later is no news; beside something new it is judged by that."""
    watched = Watched()
    poll(watched, 1.0)
    again = OpenWait(unit="u", kind="call", aim=Outside())
    assert watched.dog.asks(again, call(), 5.0)
    parts = (again, *(OpenWait(unit="u", kind="signal", aim=Outside()) for _ in range(others)))
    first = OpenWait(unit="u", kind="first", aim=Outside(), parts=parts)
    watched.graph.open(first)
    assert watched.look(21.0) == ([] if others else ["ask"])
    assert watched.dog.repeated("u") == ([] if others else [first])


def test_a_unit_that_asks_the_same_again_and_again_is_woken_first() -> None:
    """D7, F63: the repeated wait is ended, the next one refused, and after one more time-out the unit is given up."""
    watched = Watched()
    poll(watched, 1.0)
    for now in (5.0, 10.0, 15.0):
        assert poll(watched, now)
    assert watched.look(21.0) == ["ask"]
    watched.dog.heard("u", 0.0, 21.0)
    wait = watched.ask(call(), 30.0)
    assert wait is not None
    assert watched.look(31.0) == ["wake"]
    assert watched.dog.repeated("u") == [wait]
    watched.get(wait, call(), failure("no_progress"), 31.0)
    assert watched.dog.state("u") == "woken", "our own word is no progress of the unit"
    assert not poll(watched, 32.0)
    assert watched.look(41.0) == ["release"]


def test_a_woken_unit_that_takes_another_way_goes_on() -> None:
    """D7: it was told in time, asks somebody else, and is not given up."""
    watched = in_state("woken")
    assert poll(watched, 45.0, "decide")
    assert watched.dog.state("u") == "working"


def test_polling_that_comes_to_something_new_is_left_alone() -> None:
    """D7, F64: a hundred equal reads of a status that moves are an honest way to wait."""
    watched = Watched()
    for number in range(100):
        wait = watched.ask(call(), number * 10.0)
        assert wait is not None
        watched.get(wait, call(), Outcome(value=number), number * 10.0 + 1)
        assert watched.look(number * 10.0 + 2) == []


def test_what_is_remembered_of_a_unit_is_bounded() -> None:
    """B14: a unit may count to a million in its notes."""
    watched = Watched()
    for number in range(SEEN_MAX * 3):
        watched.dog.noted("u", str(number), 1.0)
    watched.dog.noted("u", "0", 50.0)
    assert watched.look(69.0) == [], "long forgotten, it is new"


def test_a_unit_that_has_ended_is_forgotten() -> None:
    """B14: with its waits; a wait may end after it."""
    watched = Watched()
    wait = watched.ask(call(), 1.0)
    assert wait is not None
    watched.dog.end("u")
    watched.dog.end("u")
    watched.end(wait, 2.0)
    assert (len(watched.dog), list(watched.dog), "u" in watched.dog) == (0, [], False)


def test_every_state_can_be_left_but_the_last() -> None:
    """D7: nothing hangs in the watchdog itself."""
    left = {state for state, _ in TABLE}
    assert set(get_args(State)) - left == {"released"}
    assert {event for _, event in TABLE} == set(get_args(Event))


@pytest.mark.parametrize(
    "wrong", [{"look_s": 0.0}, {"quiet_factor": 0.5}, {"least_s": -1.0}, {"lag_s": 0.0}, {"look_s": float("nan")}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    """I1: with the name of the option."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        WatchdogOptions(**wrong)


def poll(watched: Watched, now: float, task_type: str = "look") -> bool:
    """The unit reads once, with the answer it had before; False: it was refused."""
    wait = watched.ask(call(task_type), now)
    if wait is not None:
        watched.get(wait, call(task_type), DONE, now)
    return wait is not None


def in_state(state: State) -> Watched:
    """A unit that has come to this state by time alone, at 40 s or before."""
    watched = Watched()
    if state == "working":
        return watched
    if state == "woken":
        poll(watched, 0.0)
        poll(watched, 0.0)
    watched.look(20.0)
    if state != "asked":
        watched.dog.heard("u", 9.0 if state == "blocked" else 0.0, 20.0)
    if state in ("woken", "released"):
        watched.look(30.0)
    assert watched.dog.state("u") == state
    return watched
