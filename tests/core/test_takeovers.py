"""Instance names that several processes have, by example."""

from __future__ import annotations

from agentgate.core.takeovers import INSTANCES_MAX, SHOWN_MAX, TAKEOVERS_MIN, WINDOW_S, Sharing, Takeovers


def test_two_processes_that_alternate_are_noticed() -> None:
    """A8: the third takeover within a minute is no accident, and every further one says so again."""
    seen = Takeovers[int]()
    assert [seen.note("i1", pid, float(at)) for at, pid in enumerate((11, 12))] == [None, None]
    assert seen.note("i1", 11, 2.0) == Sharing(3, [11, 12])
    assert seen.note("i1", 12, 3.0) == Sharing(4, [11, 12])


def test_an_endpoint_that_comes_back_tells_two_processes_from_one_that_starts_anew() -> None:
    """A8: ever new ports are a program that is started again and again."""
    seen = Takeovers[str]()
    assert [seen.note("i1", port, 1.0) for port in ("1", "2", "3")][2] == Sharing(3, ["1", "2", "3"])
    assert not Sharing(3, ["1", "2", "3"]).is_alternating
    assert Sharing(3, ["1", "2"]).is_alternating
    assert Sharing(3, ["1", "2"]).evidence("endpoints") == {"takeovers": 3, "endpoints": ["1", "2"]}


def test_what_happens_once_in_a_while_is_not() -> None:
    """A8: takeovers count for a minute, and each instance by itself; a process that says no id counts all the same."""
    seen = Takeovers[int]()
    for number in range(10):
        assert seen.note("i1", 0, number * WINDOW_S / (TAKEOVERS_MIN - 1)) is None
    assert [seen.note(f"i{number}", 7, 1000.0) for number in range(10)] == [None] * 10
    assert [seen.note("i20", 0, 1000.0) for _ in range(3)][2] == Sharing(3, [])


def test_everything_is_bounded() -> None:
    """F110: however many names and takeovers there are; who was quiet is forgotten."""
    seen = Takeovers[int]()
    found = [seen.note("i1", pid, 1.0) for pid in range(1, 2 * SHOWN_MAX + 1)][-1]
    assert found == Sharing(SHOWN_MAX, list(range(SHOWN_MAX + 1, 2 * SHOWN_MAX + 1)))
    for number in range(2 * INSTANCES_MAX):
        seen.note(f"n{number}", 1, 2.0)
    assert len(seen) == INSTANCES_MAX
    for at in (100.0, 200.0):
        seen.note("late", 1, at)
    assert len(seen) == 1
