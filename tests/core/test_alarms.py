"""Times to look again."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.alarms import SLACK, Alarms


@dataclass
class Item:
    at: float
    waiting: bool = True


def test_only_what_still_waits_is_named() -> None:
    """A dead entry neither comes due nor sets the next time."""
    alarms: Alarms[Item] = Alarms()
    items = [Item(float(at)) for at in (3, 1, 2, 5)]
    for item in items:
        alarms.add(item.at, item)
    items[1].waiting = False
    assert alarms.next() == 2.0
    items[0].waiting = False
    assert alarms.pop_due(4.0) == [items[2]]
    assert alarms.next() == 5.0
    items[3].waiting = False
    assert alarms.next() is None
    assert alarms.pop_due(9.0) == []


@given(st.lists(st.integers(0, 9), max_size=50))
def test_due_items_come_in_order_of_time_and_of_arrival(times: list[int]) -> None:
    """Sorting by time, stable, is all there is to it."""
    alarms: Alarms[Item] = Alarms()
    items = [Item(float(at)) for at in times]
    for item in items:
        alarms.add(item.at, item)
    assert alarms.pop_due(10.0) == sorted(items, key=lambda item: item.at)
    assert len(alarms) == 0


def test_dead_entries_do_not_pile_up() -> None:
    """Ten thousand short waits with far deadlines leave a heap about as long as those that wait now."""
    alarms: Alarms[Item] = Alarms()
    alive = [Item(1e6) for _ in range(10)]
    for item in alive:
        alarms.add(item.at, item)
    longest = 0
    for number in range(10_000):
        item = Item(1000.0 + number)
        alarms.add(item.at, item)
        item.waiting = False
        longest = max(longest, len(alarms))
    assert longest <= 2 * (len(alive) + 1) + SLACK
    assert alarms.pop_due(1e7) == alive
