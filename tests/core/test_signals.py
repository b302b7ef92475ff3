"""Signals: who gets one, how long it is kept, how a wait ends."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from agentgate.core.promises import Promiser
from agentgate.core.signals import RECENT_MAX, STALE_MIN, Received, Signal, SignalBook, SignalOptions, SignalWait
from agentgate.model import Outcome, problem

KEEP_S = 600.0
_numbers = itertools.count(1)


def waiting(
    unit: str = "u1", name: str = "done", about: str = "o1", *, from_agent: str = "", **more: Any
) -> SignalWait:
    facts: dict[str, Any] = {"tenant": "t", "agent": "order", "since": 0.0, "deadline": 30.0, **more}
    wait_id = facts.pop("id", ("i1", f"w{next(_numbers)}"))
    return SignalWait(id=wait_id, unit=unit, name=name, about=about, from_agent=from_agent, **facts)


def news(value: Any = 1, name: str = "done", about: str = "o1", **more: Any) -> Signal:
    facts = {"instance": "i2", "id": f"s{next(_numbers)}", "unit": "u2", "tenant": "t", "agent": "review", **more}
    return Signal(name=name, about=about, value=value, **facts)


def book(**options: Any) -> SignalBook:
    return SignalBook(SignalOptions(**options))


def ends(waits: list[SignalWait]) -> list[tuple[str, Any]]:
    """Codes and values of these waits; "open" for one that has not ended."""
    return [("open", None) if one.outcome is None else (one.outcome.code, one.outcome.value) for one in waits]


def test_all_who_wait_get_it() -> None:
    """4.4: every unit that waits now gets the signal, and nothing is kept."""
    signals = book()
    first, second, other = waiting("u1"), waiting("u3"), waiting("u4", about="o2")
    for wait in (first, second, other):
        assert signals.wait(wait, 0.0) is None
    assert signals.signal(news(7), 1.0) == Received(None, [first, second])
    assert ends([first, second, other]) == [("", 7), ("", 7), ("open", None)]
    assert (signals.waiting, signals.kept) == (1, 0)
    assert signals.open_waits() == [other]


def test_a_signal_that_nobody_waits_for_is_kept_for_the_first_who_comes() -> None:
    """4.4: signal before wait works; one of them has it then, and of several the oldest goes first."""
    signals = book()
    for value in (1, 2):
        assert signals.signal(news(value), 0.0) == Received(None, [])
    waits = [waiting("u1"), waiting("u3"), waiting("u4")]
    for wait in waits:
        signals.wait(wait, 1.0)
    assert ends(waits) == [("", 1), ("", 2), ("open", None)]
    assert signals.kept == 0


@pytest.mark.parametrize(
    ("wait", "signal", "fits"),
    [
        ({"from_agent": "review"}, {}, True),
        ({"from_agent": "audit"}, {}, False),
        ({}, {"to": "order"}, True),
        ({}, {"to": "audit"}, False),
        ({}, {"tenant": "other"}, False),
        ({}, {"name": "begun"}, False),
        ({}, {"about": ""}, False),
        ({"about": ""}, {"about": ""}, True),
        ({"about": ""}, {}, False),
    ],
)
def test_name_object_sender_and_receiver_have_to_fit(wait: dict[str, Any], signal: dict[str, Any], fits: bool) -> None:
    """4.4: whichever of the two comes first, they find one another, or do not."""
    before, after = book(), book()
    early, late = waiting(**wait), waiting(**wait)
    before.signal(news(**signal), 0.0)
    before.wait(late, 0.0)
    after.wait(early, 0.0)
    after.signal(news(**signal), 0.0)
    assert ends([early, late]) == ([("", 1)] * 2 if fits else [("open", None)] * 2)


def test_a_kept_signal_expires() -> None:
    """Until its time it is there, from then on it is not, whether somebody looks or only time passes."""
    signals = book(keep_s=KEEP_S)
    signals.signal(news(1), 0.0)
    signals.signal(news(2), 1.0)
    assert signals.next_deadline() == KEEP_S
    late = waiting(since=KEEP_S, deadline=KEEP_S + 1)
    signals.wait(late, KEEP_S)
    assert ends([late]) == [("", 2)]
    signals.signal(news(3), KEEP_S)
    assert signals.tick(2 * KEEP_S) == []
    assert (signals.kept, signals.expired, signals.next_deadline()) == (0, 2, None)


def test_a_wait_that_is_over_needs_a_human() -> None:
    """D10: its time is over at its deadline, with words that say what did not happen."""
    signals = book()
    anybody, somebody = waiting(deadline=5.0), waiting(about="", from_agent="review", deadline=6.0)
    signals.wait(anybody, 0.0)
    signals.wait(somebody, 0.0)
    assert signals.next_deadline() == 5.0
    assert signals.tick(4.9) == []
    assert signals.tick(6.0) == [anybody, somebody]
    details = [wait.outcome.error.detail for wait in (anybody, somebody) if wait.outcome and wait.outcome.error]
    assert ends([anybody, somebody]) == [("needs_human", None)] * 2
    assert details == ["nobody said `done` about 'o1' within 5 s", "review did not say `done` within 6 s"]
    assert signals.waiting == 0


def test_a_signal_is_known_when_it_is_sent_again() -> None:
    """C5: by its process and its own id, for as many as can be on their way at once."""
    signals = book()
    sent = [news(number) for number in range(RECENT_MAX + 1)]
    for signal in sent:
        assert not signals.knows(signal.instance, signal.id)
        signals.signal(signal, 0.0)
    assert [signals.knows("i2", signal.id) for signal in (sent[0], sent[1], sent[-1])] == [False, True, True]
    assert not signals.knows("i3", sent[-1].id)
    for now in (0.0, 2 * KEEP_S, 4 * KEEP_S):
        signals.tick(now)
    assert not signals.knows("i2", sent[-1].id)


def test_the_end_of_a_wait_is_remembered_until_its_process_has_it() -> None:
    """4.5: the answer may be lost with the connection; then the wait comes again and is answered again."""
    signals = book()
    ended, still = waiting(), waiting(about="o2")
    signals.wait(ended, 0.0)
    signals.wait(still, 0.0)
    signals.signal(news(7), 1.0)
    known = signals.get(ended.id)
    assert known is not None
    assert known.outcome == Outcome(value=7)
    assert signals.of_unit("u1") == [ended, still]
    assert signals.forget(ended.id) is None
    assert signals.get(ended.id) is None
    assert signals.forget(still.id) is still
    assert ends([still]) == [("cancelled", None)]
    assert signals.forget(still.id) is None
    assert not signals.concerns("u1")


def test_a_wait_ends_with_its_unit() -> None:
    """Everything has an owner: nothing of it is kept after that."""
    signals = book()
    wait, had = waiting(), waiting(about="o2")
    signals.signal(news(about="o2"), 0.0)
    signals.wait(wait, 0.0)
    signals.wait(had, 0.0)
    assert signals.concerns("u1")
    assert signals.unit_ended("u1", 1.0, final=True) == [wait]
    assert ends([wait, had]) == [("lease_lost", None), ("", 1)]
    assert (signals.get(wait.id), signals.get(had.id), signals.of_unit("u1")) == (None, None, [])
    assert signals.next_deadline() is None


def test_who_waits_for_a_broken_promise_is_told() -> None:
    """4.4: whoever named the agent; who would take it from anybody, or asked for another object, goes on waiting."""
    signals = book(promise_grace_s=5.0)
    signals.unit_opened(Promiser("r1", "t", "review", "o1", {"done"}))
    exactly, anybody, other = waiting(from_agent="review"), waiting(), waiting(from_agent="review", about="o2")
    for wait in (exactly, anybody, other):
        signals.wait(wait, 0.0)
    assert [signals.groups(wait) for wait in (exactly, anybody, other)] == [(("r1",),), (("r1",),), ()]
    assert signals.concerns("r1")
    assert signals.unit_ended("r1", 1.0, final=True) == [exactly]
    assert ends([exactly, anybody, other]) == [("promise_broken", None), ("open", None), ("open", None)]
    assert signals.groups(anybody) == ()


def test_who_comes_after_a_broken_promise_is_told_at_once() -> None:
    """4.4: a signal of it that is kept comes first; the end is remembered like any other."""
    signals = book()
    signals.unit_opened(Promiser("r1", "t", "review", "o1", {"done"}))
    signals.unit_ended("r1", 1.0, final=True)
    signals.signal(news(agent="review"), 2.0)
    heard, late, anybody = waiting(from_agent="review"), waiting(from_agent="review"), waiting()
    for wait in (heard, late, anybody):
        assert signals.wait(wait, 3.0) is None
    assert ends([heard, late, anybody]) == [("", 1), ("promise_broken", None), ("open", None)]
    assert (signals.get(late.id), signals.waiting) == (late, 1)


def test_nobody_waits_for_its_own_promise() -> None:
    """4.4: the wait graph is told of the others who may send it; if there are none, it may be anybody."""
    signals = book()
    wait = waiting("r1")
    signals.wait(wait, 0.0)
    signals.unit_opened(Promiser("r1", "t", "review", "o1", {"done"}))
    assert signals.groups(wait) == ()
    signals.unit_opened(Promiser("r2", "t", "audit", "o1", {"done"}))
    assert signals.groups(wait) == (("r2",),)
    signals.release(wait.id, problem("deadlock"))
    assert signals.groups(wait) == (), "it is over"


def test_a_wait_can_be_ended_from_outside() -> None:
    """D3: it ends with what is said, once; that is remembered like any other end."""
    signals = book()
    wait, had = waiting(), waiting("u2")
    signals.wait(wait, 0.0)
    assert signals.release(wait.id, problem("deadlock")) is wait
    assert signals.release(wait.id, problem("internal")) is None
    assert signals.release(had.id, problem("deadlock")) is None
    assert ends([wait]) == [("deadlock", None)]
    assert (signals.get(wait.id), signals.waiting, signals.next_deadline()) == (wait, 0, None)


def test_a_promise_in_grace_is_broken_by_time() -> None:
    """4.4: no other attempt has begun when the grace ends; nobody need wait for it by then."""
    signals = book(promise_grace_s=5.0)
    for unit, about in (("r1", "o1"), ("r2", "o2")):
        signals.unit_opened(Promiser(unit, "t", "review", about, {"done"}))
        signals.unit_ended(unit, 1.0, final=False)
    wait = waiting(from_agent="review")
    signals.wait(wait, 2.0)
    assert signals.next_deadline() == 6.0
    assert signals.tick(6.0) == [wait]
    assert ends([wait]) == [("promise_broken", None)]


def test_a_promise_that_was_kept_is_not_broken() -> None:
    """4.4: the signal was for another who waited; a later wait runs into its time, not into a broken promise."""
    signals = book()
    signals.unit_opened(Promiser("r1", "t", "review", "o1", {"done"}))
    first, second = waiting(from_agent="review"), waiting(from_agent="review")
    signals.wait(first, 0.0)
    signals.signal(news(unit="r1"), 0.0)
    signals.wait(second, 0.0)
    assert signals.unit_ended("r1", 1.0, final=True) == []
    assert ends([first, second]) == [("", 1), ("open", None)]


def test_a_unit_waits_for_a_bounded_number_of_signals() -> None:
    """Invariant 10: ends that were told make room, open waits do not."""
    signals = book(waits_per_unit=2)
    first, second, third, fourth = waiting(), waiting(about="o2"), waiting(about="o2"), waiting(about="o3")
    signals.signal(news(), 0.0)
    for wait in (first, second, third):
        assert signals.wait(wait, 0.0) is None
    assert signals.get(first.id) is None
    refused = signals.wait(fourth, 0.0)
    assert refused is not None
    assert (refused.code, signals.get(fourth.id)) == ("overloaded", None)
    assert signals.wait(waiting("u2"), 0.0) is None


def test_kept_signals_are_bounded_for_each_agent_and_tenant() -> None:
    """Invariant 10: at the bound a new one is refused, with the time; one that somebody waits for is not."""
    signals = book(kept_per_agent=2, kept_per_tenant=3, keep_s=KEEP_S)
    for number in range(2):
        assert signals.signal(news(about=f"o{number}"), float(number)).error is None
    refused = news(about="o9")
    error = signals.signal(refused, 10.0).error
    assert error is not None
    assert (error.code, error.retry_after_ms) == ("overloaded", 590_000)
    assert not signals.knows("i2", refused.id)
    assert signals.signal(news(agent="audit"), 10.0).error is None
    assert signals.signal(news(agent="stock"), 10.0).error is not None
    assert signals.signal(news(agent="stock", tenant="other"), 10.0).error is None
    signals.wait(waiting(about="o9"), 10.0)
    assert signals.signal(news(about="o9"), 10.0).error is None
    signals.wait(waiting(about="o0"), 10.0)
    assert signals.signal(news(about="o8"), 10.0).error is None
    assert signals.signal(news(about="o7"), KEEP_S + 1).error is None


def test_deadlines_of_waits_that_are_over_do_not_pile_up() -> None:
    """Invariant 10: however many waits end early, what is remembered of them stays small."""
    signals = book(waits_per_unit=1)
    for _ in range(10 * STALE_MIN):
        wait = waiting()
        signals.wait(wait, 0.0)
        signals.signal(news(), 0.0)
    assert len(signals._deadlines) <= STALE_MIN + 2  # noqa: SLF001 - what nobody can see from outside
    last = waiting(deadline=50.0)
    signals.wait(last, 0.0)
    assert signals.next_deadline() == 50.0
    assert signals.tick(40.0) == []
    assert signals.tick(50.0) == [last]


@pytest.mark.parametrize("wrong", [{"wait_s": 0.0}, {"keep_s": float("inf")}, {"waits_per_unit": 0}])
def test_options_are_within_reason(wrong: dict[str, Any]) -> None:
    """F26: a wrong limit is refused when it is read."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SignalOptions(**wrong)
