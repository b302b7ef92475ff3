"""The map that remote names cannot fill, one rule at a time."""

from __future__ import annotations

import pytest

from agentgate.core.bounded import HELD_LOOKS, BoundedMap


def filled(limit: int, *keys: str) -> BoundedMap[str, int]:
    rows: BoundedMap[str, int] = BoundedMap(limit)
    for number, key in enumerate(keys):
        rows[key] = number
    return rows


def odd_protected(limit: int, *values: int) -> BoundedMap[int, int]:
    rows: BoundedMap[int, int] = BoundedMap(limit, keep=lambda value: value % 2 == 1)
    for value in values:
        rows[value] = value
    return rows


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_holds_nothing_is_refused(limit: int) -> None:
    """A limit of 0 or below cannot be meant, and says so."""
    with pytest.raises(ValueError, match="limit must be at least 1"):
        BoundedMap(limit)


def test_the_least_recently_used_goes() -> None:
    """`get` and setting make an entry younger; the oldest goes when there is no room."""
    rows = filled(3, "a", "b", "c")
    assert rows.get("a") == 0
    rows["b"] = 10
    rows["d"] = 3
    assert list(rows) == ["a", "b", "d"]
    assert (rows.get("c"), len(rows), rows.evictions, rows.forced) == (None, 3, 1, 0)


def test_a_query_leaves_no_trace() -> None:
    """F110: `peek`, `in`, iteration, `items` and size create nothing and make nothing younger."""
    rows = filled(2, "a", "b")
    assert (rows.peek("a"), rows.peek("z"), "a" in rows, "z" in rows, len(rows)) == (0, None, True, False, 2)
    assert rows.items() == [("a", 0), ("b", 1)]
    rows["c"] = 2
    assert list(rows) == ["b", "c"]


def test_get_of_an_unknown_key_gives_the_default() -> None:
    """A missing entry is None or the default, and is not created."""
    rows = filled(2, "a")
    assert (rows.get("z"), rows.get("z", 7), len(rows)) == (None, 7, 1)


def test_pop_makes_room() -> None:
    """A removed entry is returned once, from whichever row it stands in, and frees its place."""
    rows = odd_protected(3, 1, 2, 3)
    rows[4] = 4  # 1 becomes held, 2 goes
    rows.sweep(0.0, 10.0)  # 3 and 4 become stale
    rows[4] = 4
    assert (rows.pop(1), rows.pop(3), rows.pop(4), rows.pop(4)) == (1, 3, 4, None)
    assert (len(rows), rows.evictions) == (0, 1)


def test_a_protected_entry_stays_while_another_can_go() -> None:
    """Protected entries are passed over, whatever their age, and can still be read and written."""
    rows = odd_protected(3, 1, 3, 2)
    rows[4] = 4
    assert (sorted(rows), rows.forced) == ([1, 3, 4], 0)
    assert (rows.peek(1), 1 in rows) == (1, True)
    rows[3] = 3
    assert rows.get(1) == 1
    rows[6] = 6
    assert sorted(rows) == [1, 3, 6]


def test_the_bound_holds_when_everything_is_protected() -> None:
    """With nothing else to forget, the protected entry that was used least recently goes, and is counted."""
    rows = odd_protected(2, 1, 3)
    rows[5] = 5
    assert (sorted(rows), rows.evictions, rows.forced) == ([3, 5], 1, 1)


def test_an_entry_that_lost_its_protection_goes_first() -> None:
    """An entry that was passed over once is looked at again: when its protection has ended, it makes room."""
    protected = {1, 2}
    rows: BoundedMap[int, int] = BoundedMap(3, keep=lambda value: value in protected)
    for value in (1, 2, 3, 4):
        rows[value] = value
    assert sorted(rows) == [1, 2, 4]
    protected.discard(1)
    rows[5] = 5
    assert (sorted(rows), rows.forced) == ([2, 4, 5], 0)


def test_an_unprotected_entry_is_found_behind_protected_ones() -> None:
    """When all but one of the entries passed over are still protected, that one goes."""
    protected = {1, 2, 3, 4}
    rows: BoundedMap[int, int] = BoundedMap(3, keep=lambda value: value in protected)
    for value in (1, 2, 3, 4):
        rows[value] = value
    assert (sorted(rows), rows.forced) == ([2, 3, 4], 1)
    protected.discard(3)
    rows[5] = 5
    assert (sorted(rows), rows.forced) == ([2, 4, 5], 1)


def test_one_insertion_looks_at_a_fixed_number_of_protected_entries() -> None:
    """The cost of an insertion does not grow with the number of protected entries."""
    asked: list[int] = []

    def keep(value: int) -> bool:
        asked.append(value)
        return True

    rows: BoundedMap[int, int] = BoundedMap(1000, keep=keep)
    for value in range(1001):
        rows[value] = value
    asked.clear()
    for value in range(1001, 1101):
        rows[value] = value
    assert len(asked) <= 100 * (HELD_LOOKS + 2)
    assert (len(rows), rows.forced) == (1000, 101)


def test_sweep_forgets_what_was_idle() -> None:
    """An entry without use for one to two idle times goes; one that was used stays."""
    rows = filled(10, "used", "idle")
    assert rows.sweep(100.0, 60.0) == 0
    assert (rows.get("used"), rows.sweep(159.9, 60.0), len(rows)) == (0, 0, 2)
    assert (rows.sweep(160.0, 60.0), list(rows)) == (1, ["used"])
    assert (rows.sweep(220.0, 60.0), rows.evictions, len(rows)) == (1, 0, 0)


def test_sweep_spares_the_protected() -> None:
    """F110: open breakers and live leases survive the sweep, however long they were idle."""
    rows = odd_protected(10, 1, 2, 3)
    for turn in range(5):
        rows.sweep(turn * 60.0, 60.0)
    assert sorted(rows) == [1, 3]


def test_protection_that_ended_gives_one_more_idle_time() -> None:
    """An entry that was passed over for its protection is not swept in the turn after that has ended."""
    protected = {1}
    rows: BoundedMap[int, int] = BoundedMap(1, keep=lambda value: value in protected)
    rows[1] = 1
    rows.sweep(0.0, 60.0)
    rows.sweep(60.0, 60.0)
    protected.clear()
    assert (rows.sweep(120.0, 60.0), len(rows)) == (0, 1)
    assert (rows.sweep(180.0, 60.0), len(rows)) == (1, 0)


def test_two_hundred_thousand_names_do_not_stay() -> None:
    """F110: 200 000 names pass through a map of 10 000; after two idle times only protected ones are left."""
    rows: BoundedMap[int, int] = BoundedMap(10_000, keep=lambda value: value % 1000 == 0)
    for value in range(200_000):
        rows[value] = value
    assert (len(rows), rows.forced) == (10_000, 0)
    rows.sweep(0.0, 60.0)
    rows.sweep(60.0, 60.0)
    assert sorted(rows) == [value for value in range(200_000) if value % 1000 == 0]
