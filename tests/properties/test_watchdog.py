"""Laws of the watchdog, whatever a unit does and whenever it is looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.open_wait import OpenWait
from agentgate.model import Outcome
from tests.core.watched import Watched, call

TIMEOUT_S = 10.0

deeds = st.one_of(
    st.tuples(st.just("note"), st.integers(0, 3)),
    st.tuples(st.just("ask"), st.integers(0, 3)),
    st.tuples(st.just("get"), st.integers(0, 2)),
    st.tuples(st.just("beat"), st.sampled_from([0, 5])),
    st.tuples(st.just("look"), st.just(0)),
)
stories = st.lists(st.tuples(st.floats(0.0, 15.0), deeds), max_size=60)


class Story:
    """A unit, with a naive account of what it has shown beside it."""

    def __init__(self) -> None:
        self.watched = Watched()
        self.now = 0.0
        self.moved_at = 0.0
        self.asked_at: float | None = None
        self.shown: set[tuple[str, int, int]] = set()
        self.waits: list[tuple[OpenWait, int, bool]] = []
        self.released_at: float | None = None

    def do(self, what: str, which: int) -> None:
        """One deed of the unit, of its process, or of the timer."""
        dog = self.watched.dog
        if what == "note":
            self._show("note", which)
            dog.noted("u", str(which), self.now)
        elif what == "ask":
            self._ask(which)
        elif what == "get" and self.waits:
            wait, asked, _ = self.waits.pop(0)
            self._show("got", asked, which)
            self.watched.get(wait, call(payload=asked), Outcome(value=which), self.now)
        elif what == "beat":
            dog.heard("u", float(which), self.now)
        elif what == "look":
            self._look()

    def _ask(self, which: int) -> None:
        is_new = self._show("asked", which)
        was_woken = self.watched.dog.state("u") == "woken"
        wait = self.watched.ask(call(payload=which), self.now)
        assert (wait is None) == (was_woken and not is_new)
        if wait is not None:
            self.waits.append((wait, which, is_new))

    def _show(self, what: str, which: int, result: int = 0) -> bool:
        is_new = (what, which, result) not in self.shown
        self.shown.add((what, which, result))
        if is_new and self.released_at is None:
            self.moved_at, self.asked_at = self.now, None
        return is_new

    def _look(self) -> None:
        for action in self.watched.look(self.now):
            assert not any(is_new for _, _, is_new in self.waits), "what it waits for is not its own fault"
            assert self.now >= self.moved_at + 2 * TIMEOUT_S
            assert self.released_at is None, "it is given up once"
            if action == "ask":
                assert self.asked_at is None, "its process is asked once a silence"
                self.asked_at = self.now
            else:
                assert self.asked_at is not None
                assert self.now >= self.asked_at + TIMEOUT_S
            if action == "wake":
                for wait in self.watched.dog.repeated("u"):
                    assert wait in [repeated for repeated, _, is_new in self.waits if not is_new]
            if action == "release":
                self.released_at = self.now


@given(stories)
def test_nobody_is_asked_woken_or_given_up_before_time(story: list[tuple[float, tuple[str, int]]]) -> None:
    """D7: two time-outs without anything new before it is asked after, and one more before anything is done."""
    unit = Story()
    for wait_s, (what, which) in story:
        unit.now += wait_s
        unit.do(what, which)


@given(stories)
def test_who_shows_nothing_new_is_given_up_in_the_end(story: list[tuple[float, tuple[str, int]]]) -> None:
    """D7: whatever it did before: as long as its process lives and it waits for nothing new, it takes six time-outs."""
    unit = Story()
    for wait_s, (what, which) in story:
        unit.now += wait_s
        unit.do(what, which)
    while unit.waits:
        unit.do("get", 0)
    for _ in range(7 * int(TIMEOUT_S)):
        unit.now += 1.0
        unit.do("look", 0)
        unit.do("beat", 5)
    assert unit.released_at is not None
