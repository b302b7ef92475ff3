"""A wait for the first of several things: never said to be dead while one of them comes, and exact where it can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.first_of import FirstOf
from agentgate.core.open_wait import Group
from tests.properties.wait_kit import At

UNITS = "abcdef"
groups = st.lists(st.sampled_from(UNITS), max_size=3).map(tuple)
things = st.lists(st.lists(groups, max_size=3), min_size=1, max_size=4)
who_lives = st.sets(st.sampled_from(UNITS))


def comes(asked: list[Group] | tuple[Group, ...], live: set[str]) -> bool:
    """Whether of every group somebody is live; a group without members has come."""
    return all(not group or not live.isdisjoint(group) for group in asked)


def first_of(found: list[list[Group]]) -> list[Group]:
    return list(FirstOf([At(thing) for thing in found]).groups())


@given(things, who_lives)
def test_what_comes_is_never_said_to_be_dead(found: list[list[Group]], live: set[str]) -> None:
    """4.4, invariant 3: if any of the things comes, so does the wait; there is no false alarm."""
    if any(comes(thing, live) for thing in found):
        assert comes(first_of(found), live)


@given(things, who_lives)
def test_the_answer_is_exact_for_one_thing_or_one_group_each(found: list[list[Group]], live: set[str]) -> None:
    """4.4: a wait for running calls and for signals is dead just when all of them are."""
    for exact in (found[:1], [thing[:1] for thing in found]):
        assert comes(first_of(exact), live) == any(comes(thing, live) for thing in exact)


@given(things)
def test_it_asks_for_no_more_than_its_things_do(found: list[list[Group]]) -> None:
    """Invariant 10: as many groups as the largest of them has, everybody in a group once, whoever is asked twice."""
    asked = first_of(found)
    assert len(asked) <= max(map(len, found))
    assert all(len(set(group)) == len(group) > 0 for group in asked)
    assert asked == first_of(found)


def test_a_queue_beside_a_unit_is_told_group_by_group() -> None:
    """4.4: a call that queues for a slot and a key, or a signal of `d`: `d`, or else both of the others."""
    assert first_of([[("a", "b"), ("c",)], [("d",)]]) == [("a", "b", "d"), ("c", "d")]
    assert first_of([[("a", "b"), ()], [("d",)]]) == [("a", "b", "d")]
    assert first_of([[("a", "b"), ("c",)], []]) == []
