"""All breakers together: who shares one, and what a ticket does to them."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.breaker import BreakerOptions, State
from agentgate.core.breakers import IDLE_S, Breakers, BreakerTicket, Opening
from agentgate.core.policy import Admit, Refuse, Ticket
from agentgate.errors import CODES
from agentgate.model import Call, Outcome, failure

OK = Outcome(value=1)
RAISED = failure("handler_error", sent=True)
TIMED_OUT = failure("deadline_exceeded", sent=True)
UNCONNECTED = failure("agent_lost")


def call_of(task_type: str = "confirm", agent: str = "order", **fields: Any) -> Call:
    return Call(id="c1", target=agent, task_type=task_type, agent=agent, **fields)


def breakers_of(**options: Any) -> Breakers:
    return Breakers(BreakerOptions(**{"open_spread": 0.0, **options}), lambda: 0.5)


def admitted(breakers: Breakers, call: Call, now: float) -> BreakerTicket:
    decision = breakers.admit(call, now)
    assert isinstance(decision, Admit)
    assert isinstance(decision.ticket, BreakerTicket)
    return decision.ticket


def passes(breakers: Breakers, call: Call, now: float) -> bool:
    """Whether it would be admitted; `ask` and `admit` say the same."""
    asked = breakers.ask(call, now)
    decision = breakers.admit(call, now)
    if isinstance(decision, Refuse):
        assert decision.error == asked
        return False
    assert asked is None
    breakers.abandon(decision.ticket, now)
    return True


def feed(breakers: Breakers, outcome: Outcome, times: int, now: float, call: Call | None = None) -> None:
    for _ in range(times):
        breakers.settle(admitted(breakers, call or call_of(), now), outcome, now)


def states(breakers: Breakers, now: float) -> dict[tuple[str, str | None], State]:
    return {(shown.agent, shown.task_type): shown.state for shown in breakers.states(now)}


def test_one_type_never_cuts_off_another() -> None:
    """B2: faults of one task type open that type's breaker; other types and other agents go on."""
    breakers = breakers_of()
    feed(breakers, RAISED, 5, 0.0)
    refused = breakers.admit(call_of(), 1.0)
    assert isinstance(refused, Refuse)
    assert (refused.error.code, refused.error.retry, refused.error.retry_after_ms) == ("breaker_open", "never", 9000)
    assert passes(breakers, call_of("cancel"), 1.0)
    assert passes(breakers, call_of(agent="stock"), 1.0)
    assert breakers.openings() == [Opening("order", "confirm", 10.0)]
    assert breakers.openings() == []


def test_an_agent_that_cannot_be_reached_is_left_alone_altogether() -> None:
    """B2: attempts that could not even be sent open the agent's own breaker, for every task type."""
    breakers = breakers_of()
    feed(breakers, UNCONNECTED, 5, 0.0)
    assert not passes(breakers, call_of("another"), 1.0)
    assert passes(breakers, call_of(agent="stock"), 1.0)
    assert breakers.openings() == [Opening("order", None, 10.0)]
    assert states(breakers, 1.0)["order", "confirm"] == "closed"
    assert breakers.state("order", "confirm", 1.0) == "open"


@pytest.mark.parametrize(
    ("outcome", "typed", "own"),
    [
        (OK, (1, 0), (1, 0)),
        (RAISED, (0, 1), (1, 0)),  # it could be reached
        (TIMED_OUT, (0, 1), (0, 0)),
        (failure("outcome_unknown", sent=True), (0, 1), (0, 0)),
        (UNCONNECTED, (0, 0), (0, 1)),
        *(
            (failure(code), (0, 0), (0, 0))
            for code in CODES
            if CODES[code].fault not in ("unreachable", "handler_error")
        ),
        (failure("deadline_exceeded"), (0, 0), (0, 0)),
    ],
)
def test_what_each_outcome_counts_as(outcome: Outcome, typed: tuple[int, int], own: tuple[int, int]) -> None:
    """B4: only the target's own doing moves a counter; throttled, malformed, rejected, refused and cancelled do not."""
    breakers = breakers_of()
    feed(breakers, outcome, 1, 0.0)
    counts = {shown.task_type: (shown.ok, shown.faults) for shown in breakers.states(0.0)}
    assert counts == {None: own, "confirm": typed}


@pytest.mark.parametrize(
    "code",
    [
        code
        for code, info in CODES.items()
        if info.fault in ("throttled", "malformed", "rejected", "refused", "caller", "cancelled", "internal")
    ],
)
def test_what_is_not_the_targets_doing_never_opens(code: str) -> None:
    """B4: a thousand of them leave every breaker closed."""
    breakers = breakers_of()
    feed(breakers, failure(code, sent=True), 1000, 0.0)
    assert set(states(breakers, 0.0).values()) == {"closed"}


@pytest.mark.parametrize("end", ["settle", "skip", "abandon"])
@pytest.mark.parametrize("again", ["settle", "skip", "abandon"])
def test_a_ticket_ends_exactly_once(end: str, again: str) -> None:
    """A second settle, skip or abandon of a ticket is a defect and raises (FAILURES kind 3)."""
    breakers = breakers_of()
    ticket = admitted(breakers, call_of(), 0.0)

    def finish(how: str) -> None:
        if how == "settle":
            breakers.settle(ticket, OK, 0.0)
        elif how == "skip":
            breakers.skip(ticket, 0.0)
        else:
            breakers.abandon(ticket, 0.0)

    finish(end)
    with pytest.raises(AssertionError):
        finish(again)


def test_a_ticket_of_another_policy_is_refused() -> None:
    """Mixing up tickets is a defect and raises."""
    with pytest.raises(AssertionError):
        breakers_of().settle(Ticket(call_of()), OK, 0.0)


@pytest.mark.parametrize("end", ["skip", "abandon", "throttled"])
def test_a_neutral_end_gives_the_trial_back(end: str) -> None:
    """A trial that says nothing frees its permit and leaves the state as it is (FAILURES kind 3)."""
    breakers = breakers_of(half_open_max=1)
    feed(breakers, RAISED, 5, 0.0)
    for _ in range(100):
        ticket = admitted(breakers, call_of(), 10.0)
        assert ticket.state == "half_open"
        assert isinstance(breakers.admit(call_of(), 10.0), Refuse)
        if end == "skip":
            breakers.skip(ticket, 10.0)
        elif end == "abandon":
            breakers.abandon(ticket, 10.0)
        else:
            breakers.settle(ticket, Outcome(error=failure("overloaded").error), 10.0)
    assert breakers.state("order", "confirm", 10.0) == "half_open"


def test_a_refusal_takes_nothing() -> None:
    """When the type's breaker refuses, the agent's own has not given a permit away."""
    breakers = breakers_of(half_open_max=1, faults_in_a_row=3)
    feed(breakers, RAISED, 2, 9.0)
    mixed = [admitted(breakers, call_of(), 9.0) for _ in range(4)]
    for ticket, outcome in zip(mixed, (UNCONNECTED, UNCONNECTED, UNCONNECTED, RAISED), strict=True):
        breakers.settle(ticket, outcome, 9.0)
    assert [shown.state for shown in breakers.states(9.0)] == ["open", "open"]
    waiting = admitted(breakers, call_of("cancel"), 19.0)  # the agent's one trial; the type has its own still
    breakers.abandon(waiting, 19.0)
    holder = admitted(breakers, call_of(), 19.0)
    for _ in range(3):
        assert isinstance(breakers.admit(call_of(), 19.0), Refuse)
    breakers.abandon(holder, 19.0)
    assert passes(breakers, call_of("cancel"), 19.0)


def test_heavy_calls_are_not_tried_first() -> None:
    """B3: for the first 10 s of half-open, heavy calls are no trials."""
    breakers = breakers_of()
    feed(breakers, RAISED, 5, 0.0)
    assert isinstance(breakers.admit(call_of(heavy=True), 10.0), Refuse)
    assert passes(breakers, call_of(heavy=True), 20.0)


def test_an_agent_is_tried_with_its_lighter_types() -> None:
    """B3: the agent's own breaker tries the task types that usually take least."""
    breakers = breakers_of()
    for task_type, duration_s in (("quick", 0.1), ("slow", 9.0)):
        ticket = admitted(breakers, call_of(task_type), 0.0)
        breakers.settle(ticket, OK, duration_s)
    breakers.settle(admitted(breakers, call_of("quick", heavy=True), 0.0), OK, 99.0)  # no measure of its type
    feed(breakers, UNCONNECTED, 5, 100.0)
    assert passes(breakers, call_of("quick"), 110.0)
    assert not passes(breakers, call_of("slow"), 110.0)
    assert not passes(breakers, call_of("quick", heavy=True), 110.0)
    assert passes(breakers, call_of("slow"), 120.0)


def test_a_lost_trial_is_noticed_by_tick() -> None:
    """A trial that never settles reopens its breaker at its limit, and its late answer changes nothing (F33)."""
    breakers = breakers_of()
    assert breakers.next_deadline() is None
    feed(breakers, RAISED, 5, 0.0)
    lost = admitted(breakers, call_of(), 10.0)
    assert breakers.next_deadline() == 40.0
    assert breakers.openings() == [Opening("order", "confirm", 10.0)]
    assert breakers.tick(39.9) == []
    assert breakers.openings() == []
    assert breakers.tick(40.0) == []
    assert breakers.openings() == [Opening("order", "confirm", 60.0)]
    assert breakers.next_deadline() is None
    breakers.settle(lost, OK, 41.0)
    assert breakers.state("order", "confirm", 41.0) == "open"
    assert passes(breakers, call_of(), 60.0)


def test_what_opened_twice_is_named_once() -> None:
    """Whoever empties a queue needs the latest opening only."""
    breakers = breakers_of()
    feed(breakers, RAISED, 5, 0.0)
    feed(breakers, RAISED, 1, 10.0)
    assert breakers.openings() == [Opening("order", "confirm", 30.0)]
    assert breakers.opened_total == 2


def test_a_skill_that_may_take_longer_has_longer_trials() -> None:
    """A trial's limit is never below what the skill declares as its own."""
    breakers = breakers_of()
    feed(breakers, RAISED, 5, 0.0)
    short = admitted(breakers, call_of(), 10.0)
    admitted(breakers, call_of(skill_timeout_s=90.0), 11.0)
    breakers.settle(short, OK, 12.0)
    assert breakers.next_deadline() == 40.0  # a bound that costs nothing to keep; ticking makes it exact
    breakers.tick(40.0)
    assert breakers.next_deadline() == 101.0


def test_faults_of_an_instance_are_taken_back() -> None:
    """Ejection is decided first: skipped and retracted faults leave the breaker closed, for both of its kinds."""
    breakers = breakers_of()
    counted = []
    for outcome in (RAISED, UNCONNECTED) * 2:
        ticket = admitted(breakers, call_of(), 0.0)
        breakers.settle(ticket, outcome, 0.0)
        counted.append(ticket)
    breakers.retract(counted, 0.0)
    breakers.skip(admitted(breakers, call_of(), 0.0), 0.0)
    assert [shown.faults for shown in breakers.states(0.0)] == [0, 0]
    feed(breakers, RAISED, 4, 0.0)
    feed(breakers, UNCONNECTED, 2, 0.0)
    assert set(states(breakers, 0.0).values()) == {"closed"}


def test_a_backlog_opens_its_type() -> None:
    """B2: too many waiting calls of one type open that type's breaker, where this is configured."""
    breakers = breakers_of(backlog=100)
    breakers.note_backlog("order", "confirm", 99, 0.0)
    assert breakers.openings() == []
    breakers.note_backlog("order", "confirm", 100, 0.0)
    assert breakers.openings() == [Opening("order", "confirm", 10.0)]
    unconfigured = breakers_of()
    unconfigured.note_backlog("order", "confirm", 10**6, 0.0)
    assert unconfigured.states(0.0) == []


def test_asking_leaves_no_trace() -> None:
    """`ask` answers as `admit` would, creates no breaker and takes no permit."""
    breakers = breakers_of(half_open_max=1)
    assert breakers.ask(call_of(), 0.0) is None
    assert breakers.states(0.0) == []
    feed(breakers, RAISED, 5, 0.0)
    error = breakers.ask(call_of(), 4.0)
    assert error is not None
    assert (error.code, error.retry_after_ms) == ("breaker_open", 6000)
    for _ in range(10):
        assert breakers.ask(call_of(), 10.0) is None
    admitted(breakers, call_of(), 10.0)


def test_observing_moves_the_state_and_stops_nobody() -> None:
    """I2: in observe mode states move on statistics, every call passes, and what would be refused is marked."""
    breakers = breakers_of()
    marks = []
    for second in range(20):
        ticket = breakers.shadow(call_of(), float(second))
        marks.append(ticket.would)
        breakers.settle(ticket, RAISED if second < 10 else OK, float(second))
    assert marks == [""] * 5 + ["would_open"] * 9 + [""] * 6
    assert breakers.state("order", "confirm", 20.0) == "closed"
    assert breakers.opened_total == 1


def test_observed_trials_are_unlimited() -> None:
    """I2: observe mode lets every call be a trial; a bad one reopens it."""
    breakers = breakers_of(half_open_max=1)
    feed(breakers, RAISED, 5, 0.0)
    trials = [breakers.shadow(call_of(), 10.0) for _ in range(4)]
    assert [trial.would for trial in trials] == ["", *["would_open"] * 3]
    breakers.settle(trials[3], RAISED, 11.0)
    assert breakers.state("order", "confirm", 11.0) == "open"


def test_the_view_shows_every_breaker() -> None:
    """H1: state, counts, ratio, since when, when it is tried again, how often it opened."""
    breakers = breakers_of()
    assert breakers.state("order", "confirm", 0.0) == "closed"
    feed(breakers, OK, 5, 5.0)
    feed(breakers, RAISED, 5, 5.0)
    own, typed = breakers.states(6.0)
    assert (own.task_type, own.state, own.reopens_at, own.opened, own.ratio) == (None, "closed", None, 0, 0.0)
    assert (typed.state, typed.ok, typed.faults, typed.slow, typed.rejected) == ("open", 5, 5, 0, 0)
    assert (typed.ratio, typed.since, typed.reopens_at, typed.opened) == (0.5, 5.0, 15.0, 1)
    assert breakers.states(15.0)[1].state == "half_open"
    assert breakers.states(100.0)[1].ratio == 0.0


def test_remote_names_cannot_fill_it() -> None:
    """200 000 names leave a bounded number of breakers, and the open one among them (FAILURES F110)."""
    breakers = breakers_of(breakers_max=500)
    feed(breakers, RAISED, 5, 0.0)
    for number in range(2000):
        feed(breakers, OK, 1, 0.0, call_of(f"type-{number}", agent=f"agent-{number}"))
    assert len(breakers.states(0.0)) <= 1000
    assert breakers.state("order", "confirm", 0.0) == "open"


def test_idle_breakers_are_forgotten() -> None:
    """What nobody used for long is dropped, unless it is open."""
    breakers = breakers_of()
    feed(breakers, OK, 1, 0.0)
    feed(breakers, RAISED, 5, 0.0, call_of(agent="stock"))
    for turn in range(4):
        breakers.tick(turn * IDLE_S)
    assert states(breakers, 3 * IDLE_S) == {("stock", "confirm"): "half_open"}
