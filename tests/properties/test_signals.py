"""Over any course of events, signals and waits find one another exactly as a plain list of both says."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.core.signals import Signal, SignalBook, SignalOptions, SignalWait

KEEP_S = 10.0
AGENTS = ("", "a", "b")

step = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from("xy"), st.sampled_from(AGENTS), st.integers(0, 12)),
    st.tuples(st.just("signal"), st.sampled_from("xy"), st.sampled_from(AGENTS), st.sampled_from("ab")),
    st.tuples(st.just("again"), st.integers(0, 30)),
    st.tuples(st.just("forget"), st.integers(0, 30)),
    st.tuples(st.just("end"), st.integers(0, 2)),
    st.tuples(st.just("sleep"), st.integers(1, 6)),
)


class Oracle:
    """Every signal and every wait there ever was, looked through from the beginning each time."""

    def __init__(self) -> None:
        self.waits: list[dict[str, Any]] = []
        self.signals: list[dict[str, Any]] = []

    def wait(self, now: float, **wait: Any) -> None:
        self.waits.append({**wait, "end": None})
        for signal in self.signals:
            if signal["kept"] and now < signal["at"] + KEEP_S and self.fits(wait, signal):
                signal["kept"], self.waits[-1]["end"] = False, ("", signal["value"])
                return

    def signal(self, now: float, **signal: Any) -> None:
        hear = [wait for wait in self.waits if wait["end"] is None and self.fits(wait, signal)]
        for wait in hear:
            wait["end"] = ("", signal["value"])
        self.signals.append({**signal, "at": now, "kept": not hear})

    def passed(self, now: float) -> None:
        for wait in self.waits:
            if wait["end"] is None and wait["deadline"] <= now:
                wait["end"] = ("needs_human", None)

    @staticmethod
    def fits(wait: dict[str, Any], signal: dict[str, Any]) -> bool:
        return (
            wait["about"] == signal["about"]
            and wait["from_agent"] in ("", signal["agent"])
            and signal["to"] in ("", wait["agent"])
        )


class Course:
    """The book and the oracle, told the same."""

    def __init__(self) -> None:
        self.book = SignalBook(SignalOptions(keep_s=KEEP_S))
        self.oracle = Oracle()
        self.now = 0.0
        self.waits: list[SignalWait] = []
        self.sent: list[Signal] = []
        self.told: list[SignalWait] = []  # the ends that somebody has heard of

    def wait(self, about: str, from_agent: str, patience_s: int) -> None:
        number = len(self.waits) + len(self.sent)
        facts: dict[str, Any] = {"agent": "ab"[number % 2], "about": about, "from_agent": from_agent}
        facts |= {"unit": f"u{number % 3}", "deadline": self.now + patience_s}
        wait = SignalWait(id=("i", f"{number}"), tenant="t", name="n", since=self.now, **facts)
        self.waits.append(wait)
        assert self.book.wait(wait, self.now) is None
        self.told += [wait] if wait.outcome is not None else []
        self.oracle.wait(self.now, **facts)

    def signal(self, about: str, to: str, agent: str) -> None:
        number = len(self.waits) + len(self.sent)
        facts: dict[str, Any] = {"about": about, "to": to, "agent": agent, "value": number}
        self.sent.append(Signal(instance="i", id=f"{number}", unit="-", tenant="t", name="n", **facts))
        received = self.book.signal(self.sent[-1], self.now)
        assert received.error is None
        self.told += received.ended
        self.oracle.signal(self.now, **facts)

    def again(self, number: int) -> None:
        assert all(self.book.knows("i", signal.id) for signal in self.sent[number : number + 1])

    def forget(self, number: int) -> None:
        for wait, expected in list(zip(self.waits, self.oracle.waits, strict=True))[number : number + 1]:
            forgotten = self.book.forget(wait.id)
            self.told += [] if forgotten is None else [forgotten]
            expected["end"] = expected["end"] or ("cancelled", None)

    def end(self, number: int) -> None:
        self.told += self.book.unit_ended(f"u{number}", self.now, final=True)
        for expected in self.oracle.waits:
            if expected["unit"] == f"u{number}":
                expected["end"] = expected["end"] or ("lease_lost", None)

    def sleep(self, seconds: int) -> None:
        due = self.book.next_deadline()
        if due is None or due > self.now + seconds:
            assert self.book.tick(self.now + seconds) == []  # nothing is due before it says so
        self.now += seconds

    def check(self) -> None:
        self.told += self.book.tick(self.now)
        self.oracle.passed(self.now)
        seen = [None if wait.outcome is None else (wait.outcome.code, wait.outcome.value) for wait in self.waits]
        assert seen == [expected["end"] for expected in self.oracle.waits]
        assert self.book.waiting == len(self.book.open_waits()) == seen.count(None)
        kept = [signal for signal in self.oracle.signals if signal["kept"] and self.now < signal["at"] + KEEP_S]
        assert self.book.kept == len(kept)


@settings(max_examples=300)
@given(st.lists(step, max_size=60))
def test_every_wait_ends_as_the_plain_list_says(steps: list[tuple[Any, ...]]) -> None:
    """4.4, C5, D10: before or after, repeated, expired; never lost, never given to one wait twice, never early."""
    course = Course()
    for kind, *of in steps:
        getattr(course, kind)(*of)
        course.check()
    assert len(course.told) == len({id(wait) for wait in course.told}), "an end is told once"
    assert {id(wait) for wait in course.told} == {id(wait) for wait in course.waits if wait.outcome is not None}
