"""The inbox under every order of events: at most one live run per key, nothing lost, nothing unbounded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule

from agentgate.errors import Rejected
from agentgate.model import problem
from agentgate.model.link import Answer, InvokeParams, UnitReport
from agentgate.sdk.answers import error_answer, not_sent
from agentgate.sdk.inbox import Inbox, Tell

DONE = Answer(value=1)
CANCELLED = Answer(error=problem("cancelled", sent=True))
FAILED = Answer(error=problem("handler_error", sent=True))


def asked(key: str = "k", payload: Any = None, effect: Any = "write", task_type: str = "t") -> InvokeParams:
    return InvokeParams(task_type=task_type, caller="c", payload=payload, effect=effect, key=key, remaining_ms=1000)


def receive(inbox: Inbox, unit: str, params: InvokeParams | None = None, *, repeatable: bool = False) -> Any:
    return inbox.receive(unit, params or asked(), deadline=10.0, repeatable=repeatable)


def test_a_doubled_invoke_starts_once() -> None:
    """C5: while it runs, once it is answered and after its ack, a second copy of an invoke starts nothing."""
    inbox = Inbox()
    assert receive(inbox, "u") == "start"
    assert receive(inbox, "u") == "known"
    assert inbox.finish("u", DONE) == ["u"]
    kept = inbox.answer_of("u")
    assert receive(inbox, "u") == kept
    inbox.ack(1)
    assert receive(inbox, "u") == "known"
    assert inbox.running == inbox.kept == 0


def test_a_second_unit_of_a_live_write_joins_it() -> None:
    """C4: the same key while a run of it is alive here: one run, one answer for both, each under its own number."""
    inbox = Inbox()
    assert receive(inbox, "u1") == "start"
    assert receive(inbox, "u2") == "known"
    assert inbox.finish("u1", DONE) == ["u1", "u2"]
    answers = [inbox.answer_of("u1"), inbox.answer_of("u2")]
    assert [answer and (answer.value, answer.seq) for answer in answers] == [(1, 1), (1, 2)]


def test_a_stopped_run_says_nothing_about_a_later_unit() -> None:
    """C4: a run that was given up and told to stop ends as cancelled; the unit that joined it is answered not sent."""
    inbox = Inbox()
    receive(inbox, "old")
    assert inbox.forget("old") == Tell("old", "cancel")
    assert receive(inbox, "new") == "known"
    assert inbox.finish("old", CANCELLED) == ["new"]
    answer = inbox.answer_of("new")
    assert answer is not None
    assert answer.error is not None
    assert (answer.error.code, answer.error.fault, answer.error.sent) == ("overloaded", "throttled", False)
    assert inbox.answer_of("old") is None


def test_a_forgotten_run_that_finishes_answers_the_unit_that_joined() -> None:
    """Kind 1: a handler that cannot be interrupted finishes its effect; the new unit gets that answer, not a run."""
    inbox = Inbox()
    receive(inbox, "old")
    inbox.forget("old")
    assert receive(inbox, "new") == "known"
    assert inbox.finish("old", DONE) == ["new"]
    assert inbox.answer_of("new") == Answer(value=1, seq=1)


@pytest.mark.parametrize(
    ("params", "repeatable"),
    [
        (asked(payload={"n": 2}), False),
        (asked(task_type="other"), False),
        (asked(key="other"), False),
        (asked(), True),
        (asked(effect="read"), False),
    ],
)
def test_other_work_starts_beside_it(params: InvokeParams, *, repeatable: bool) -> None:
    """Another body, type or key is other work; repeatable skills and reads may run beside themselves."""
    inbox = Inbox()
    receive(inbox, "u1", asked(payload={"n": 1}))
    assert receive(inbox, "u2", params, repeatable=repeatable) == "start"


def test_what_has_no_record_joins_nothing_and_is_joined_by_nothing() -> None:
    """I2: a unit that the gate keeps no record of runs whatever else runs, or was done, under its key."""
    inbox = Inbox()
    unrecorded = msgspec.structs.replace(asked(), unrecorded=True)
    assert receive(inbox, "u1", unrecorded) == "start"
    assert receive(inbox, "u2") == "start"
    assert receive(inbox, "u3", unrecorded) == "start"
    for unit in ("u1", "u3"):
        inbox.finish(unit, FAILED)
    assert receive(inbox, "u4") == "known", "it joins the recorded one"
    inbox.finish("u2", DONE)
    assert receive(inbox, "u5", unrecorded) == "start"
    inbox.finish("u5", DONE)
    inbox.ack(4)
    assert inbox.kept == 1
    assert receive(inbox, "u6") == "start", "only the answer without a record is left"


def test_bodies_are_compared_as_the_ledger_does() -> None:
    """DESIGN 12.8: the order of keys does not matter, 1 and 1.0 differ."""
    inbox = Inbox()
    receive(inbox, "u1", asked(payload={"a": 1, "b": 2}))
    assert receive(inbox, "u2", asked(payload={"b": 2, "a": 1})) == "known"
    assert receive(inbox, "u3", asked(payload={"a": 1.0, "b": 2})) == "start"
    assert receive(inbox, "u4", asked(payload={"a": 1, "b": 2})) == "known"


def test_an_unacknowledged_effect_is_not_done_again() -> None:
    """C4: until the ack, the gate may not have the good answer; a new unit of the key gets it instead of a run."""
    inbox = Inbox()
    receive(inbox, "u1")
    inbox.finish("u1", DONE)
    assert receive(inbox, "u2") == Answer(value=1, seq=2)
    inbox.ack(2)
    assert receive(inbox, "u3") == "start"


def test_an_unacknowledged_failure_may_be_run_again() -> None:
    """`again`: a failed run is repeated when the gate asks for it."""
    inbox = Inbox()
    receive(inbox, "u1")
    inbox.finish("u1", FAILED)
    assert receive(inbox, "u2") == "start"


def test_stop_reaches_the_run_when_all_its_units_are_told() -> None:
    """A run shared by two units is told what the mildest of them was told, once."""
    inbox = Inbox()
    receive(inbox, "u1")
    receive(inbox, "u2")
    assert inbox.stop("u1", "cancel") is None
    assert inbox.stop("u2", "expire") == Tell("u1", "expire")
    assert inbox.stop("u2", "expire") is None
    assert inbox.stop("u2", "cancel") == Tell("u1", "cancel")
    assert inbox.stop("u1", "expire") is None


def test_stop_of_an_unseen_unit_closes_it() -> None:
    """4.5: a unit that never came is reported as unseen, and its late invoke starts nothing."""
    inbox = Inbox()
    assert inbox.stop("u", "expire") == Answer(unseen=True)
    assert inbox.stop("u", "expire") is None
    assert receive(inbox, "u") == "known"


def test_stop_of_an_answered_unit_gives_its_answer_again() -> None:
    """C7: the gate did not get the answer, or it would not ask."""
    inbox = Inbox()
    receive(inbox, "u")
    inbox.finish("u", DONE)
    assert inbox.stop("u", "expire") == Answer(value=1, seq=1)


def test_at_the_bound_work_is_refused_and_no_answer_is_lost() -> None:
    """B14: with the inbox full of unacknowledged answers, new work is refused as not sent; an ack makes room."""
    inbox = Inbox(units_max=3)
    for unit in ("a", "b", "c"):
        receive(inbox, unit, asked(key=unit))
        inbox.finish(unit, DONE)
    refusal = receive(inbox, "d", asked(key="d"))
    assert refusal.error.code == "overloaded"
    assert refusal.error.sent is False
    assert receive(inbox, "d", asked(key="d")) == "known"
    assert [report.unit for report in inbox.reports(0.0)] == ["a", "b", "c"]
    inbox.ack(1)
    assert receive(inbox, "e", asked(key="e")) == "start"


def test_draining_refuses_new_work_and_lets_a_unit_join() -> None:
    """A6: who leaves takes nothing new; a unit of a key that still runs here is no new work."""
    inbox = Inbox()
    receive(inbox, "u1")
    inbox.draining = True
    assert receive(inbox, "u2", asked(key="other")).error.sent is False
    assert receive(inbox, "u3") == "known"


def test_reads_are_kept_only_without_a_connection() -> None:
    """The answer to a read waits for a connection, and is forgotten once one has taken it."""
    inbox = Inbox()
    receive(inbox, "r", asked(key="", effect="read"))
    inbox.finish("r", DONE)
    assert inbox.to_send(0.0, 10.0) == [("r", DONE)]
    inbox.reports(0.0)
    assert inbox.kept == 1  # the hello may not have arrived
    inbox.welcomed(0.0)
    assert inbox.kept == 0
    assert receive(inbox, "r", asked(key="", effect="read")) == "known"


def test_an_answer_too_large_for_the_hello_follows_the_welcome() -> None:
    """4.5: reports stay small; what does not fit is shown as running, and everything behind it as well, in order."""
    inbox = Inbox()
    sizes = {"a": 10, "b": 500, "c": 10}
    for unit, size in sizes.items():
        receive(inbox, unit, asked(key=unit))
        inbox.finish(unit, Answer(value="x" * size))
    reports = {report.unit: report.answer is not None for report in inbox.reports(0.0, bytes_max=200)}
    assert reports == {"a": True, "b": False, "c": False}
    inbox.welcomed(1.0)
    assert [unit for unit, _ in inbox.to_send(1.0, 10.0)] == ["b", "c"]


def test_an_unacknowledged_answer_is_due_again() -> None:
    """C7: an answer that was sent and stays unacknowledged is due again after a while."""
    inbox = Inbox()
    receive(inbox, "u")
    inbox.finish("u", DONE)
    inbox.sent("u", now=1.0)
    assert inbox.to_send(10.9, 10.0) == []
    assert [unit for unit, _ in inbox.to_send(11.0, 10.0)] == ["u"]


def test_what_is_finished_twice_or_unknown_changes_nothing() -> None:
    """A stray report of an end has no effect."""
    inbox = Inbox()
    assert inbox.finish("u", DONE) == []
    assert inbox.forget("u") is None
    inbox.ack(99)
    inbox.sent("u", 0.0)
    assert (inbox.running, inbox.kept, inbox.reports(0.0)) == (0, 0, ())


def test_reports_name_what_a_rejoin_needs() -> None:
    """4.5: a running unit is reported with key, token and the time it has left."""
    inbox = Inbox()
    params = msgspec.structs.replace(asked(), token="secret")
    inbox.receive("u", params, deadline=5.0, repeatable=False)
    assert inbox.reports(2.0) == (UnitReport(unit="u", key="k", token="secret", remaining_ms=3000),)


def test_answers_of_refusals_and_of_handlers_differ_in_sent() -> None:
    """Only `sent` tells the gate whether anything can have happened."""
    refused, said_no = not_sent("full"), error_answer(Rejected("no"), stopped=False)
    assert refused.error is not None
    assert said_no.error is not None
    assert (refused.error.sent, said_no.error.sent) == (False, True)


@given(seqs=st.lists(st.integers(0, 12), max_size=20), answers=st.integers(0, 10))
def test_acks_are_cumulative_and_may_repeat(seqs: list[int], answers: int) -> None:
    """Whatever acks come, in whatever order, exactly the answers up to the highest are forgotten."""
    inbox = Inbox()
    for number in range(answers):
        receive(inbox, f"u{number}", asked(key=str(number)))
        inbox.finish(f"u{number}", DONE)
    for seq in seqs:
        inbox.ack(seq)
    highest = max(seqs, default=0)
    kept = [answer.seq for _, answer in inbox.to_send(0.0, 0.0)]
    assert kept == list(range(highest + 1, answers + 1))


class InboxMachine(RuleBasedStateMachine):
    """A gate that does anything, a network that doubles anything, handlers that end anyhow, against a plain model."""

    units = Bundle("units")

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox(units_max=8, closed_max=1000)
        self.count = 0
        self.params: dict[str, InvokeParams] = {}
        self.live: dict[str, InvokeParams] = {}  # runs that handlers are at work on
        self.started: set[str] = set()
        self.owed: dict[int, str] = {}  # numbered answers that no ack has covered, and the units that gave them
        self.highest = 0

    @rule(target=units, key=st.sampled_from("ab"), write=st.integers(0, 3))
    def arrives(self, key: str, write: int) -> str:
        """A new unit: three of four are writes, half of them of the same body."""
        self.count += 1
        unit = f"u{self.count}"
        effect = "write" if write else "read"
        self.params[unit] = asked(key=key if write else "", payload=write // 2, effect=effect)
        self._invoke(unit)
        return unit

    @rule(unit=units)
    def arrives_again(self, unit: str) -> None:
        self._invoke(unit)

    @precondition(lambda self: self.live)
    @rule(data=st.data(), answer=st.sampled_from([DONE, FAILED, CANCELLED]))
    def ends(self, data: st.DataObject, answer: Answer) -> None:
        unit = data.draw(st.sampled_from(sorted(self.live)))
        del self.live[unit]
        for answered in self.inbox.finish(unit, answer):
            kept = self.inbox.answer_of(answered)
            assert kept is not None
            self._note(answered, kept)

    @rule(unit=units, kind=st.sampled_from(["cancel", "expire"]))
    def is_stopped(self, unit: str, kind: Any) -> None:
        told = self.inbox.stop(unit, kind)
        assert not isinstance(told, Tell) or told.unit in self.live
        if isinstance(told, Answer):
            assert not told.unseen or unit not in self.started

    @rule(unit=consumes(units))
    def is_unknown(self, unit: str) -> None:
        told = self.inbox.forget(unit)
        assert told is None or told.unit in self.live
        self.owed = {seq: owner for seq, owner in self.owed.items() if owner != unit}
        assert unit not in {report.unit for report in self.inbox.reports(0.0)}

    @precondition(lambda self: self.owed)
    @rule(data=st.data())
    def is_acknowledged(self, data: st.DataObject) -> None:
        acked = data.draw(st.sampled_from(sorted(self.owed)))
        self.inbox.ack(acked)
        self.owed = {seq: owner for seq, owner in self.owed.items() if seq > acked}

    @rule()
    def reconnects(self) -> None:
        self.inbox.reports(0.0)
        self.inbox.welcomed(0.0)
        for unit, _ in self.inbox.to_send(0.0, 10.0):
            self.inbox.sent(unit, 0.0)

    def _invoke(self, unit: str) -> None:
        receipt = receive(self.inbox, unit, self.params[unit])
        if receipt == "start":
            assert unit not in self.started
            self.started.add(unit)
            self.live[unit] = self.params[unit]
        elif receipt != "known":
            self._note(unit, receipt)
            self.inbox.sent(unit, 0.0)

    def _note(self, unit: str, answer: Answer) -> None:
        assert not answer.seq or answer.seq == self.highest + 1 or self.owed[answer.seq] == unit
        if answer.seq:
            self.highest = max(self.highest, answer.seq)
            self.owed[answer.seq] = unit

    @invariant()
    def one_live_run_per_write(self) -> None:
        keyed = [(params.key, params.payload) for params in self.live.values() if params.effect == "write"]
        assert len(keyed) == len(set(keyed))

    @invariant()
    def exactly_what_is_owed_is_kept_in_order(self) -> None:
        kept = [(answer.seq, unit) for unit, answer in self.inbox.to_send(0.0, 0.0) if answer.seq]
        assert kept == sorted(self.owed.items())
        assert self.inbox.running == len(self.live)

    @invariant()
    def it_stays_bounded(self) -> None:
        assert self.inbox.running <= 8
        assert self.inbox.kept <= 8


InboxMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestInbox = InboxMachine.TestCase
