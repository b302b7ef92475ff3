"""The oracle of the simulation by example: who can get on, by what agents know of runs, calls, slots and locks."""

from __future__ import annotations

from agentgate.testing.oracle import Picture, Room
from agentgate.testing.witness import Asked, Key, Run, Wanted


def run(unit: str, agent: str, instance: str = "", *, asked: int = 0, exclusive: str = "", ended: bool = False) -> Run:
    return Run(
        unit=unit,
        key=Key(agent, unit),
        task_type="book",
        body="a",
        agent=agent,
        instance=instance or f"{agent}-0",
        link=1,
        repeatable=False,
        exclusive=exclusive,
        write=not asked,
        asked=asked,
        started_at=0.0,
        until=30.0,
        told=lambda: False,
        ended_at=1.0 if ended else None,
    )


def call(unit: str, target: str, number: int, *, task: str = "look", key: str = "k") -> Asked:
    return Asked(
        caller="x",
        target=target,
        task_type=task,
        business_key=key,
        action="run",
        body="a",
        write=task != "look",
        repeatable=False,
        started_at=0.0,
        deadline=None,
        by_unit=unit,
        number=number,
    )


def room(*instances: str, running: int = 1, rests: bool = False, sound: bool = True, known: bool = True) -> Room:
    return Room(
        instances=instances,
        sound=frozenset(instances) if sound else frozenset(),
        running_max=running,
        open_max=2 * running if rests else running,
        rests=rests,
        known=known,
    )


ROOMS = {"a": room("a-0"), "b": room("b-0")}
CROSSWISE = ([run("u", "a"), run("v", "b")], [call("u", "b", 1), call("v", "a", 2)])


def test_two_that_want_each_others_slot_are_a_knot() -> None:
    """D4: each holds the only slot of its agent, and neither is anybody else's business."""
    picture = Picture(*CROSSWISE, ROOMS)
    assert picture.dead == {"u", "v"}
    assert picture.knots() == [frozenset({"u", "v"})]
    assert picture.is_knotted("u")


def test_whoever_is_busy_all_the_same_breaks_it() -> None:
    """A unit that is to stop, or is not heard, gets on whatever it waits for."""
    assert Picture(*CROSSWISE, ROOMS, busy=frozenset({"v"})).dead == set()


def test_a_free_slot_or_one_that_nobody_knows_of_breaks_it() -> None:
    """D4: room at any instance of the agent is enough, also at one that may be there."""
    assert Picture(*CROSSWISE, {**ROOMS, "b": room("b-0", "b-1")}).dead == set()
    assert Picture(*CROSSWISE, {**ROOMS, "b": room("b-0", running=2)}).dead == set()
    assert Picture(*CROSSWISE, {**ROOMS, "b": room("b-0", known=False)}).dead == set()


def test_units_that_rest_are_in_the_way_only_when_too_many_are_open() -> None:
    """DESIGN 4.3: their slots are for others, their places among the open units are not."""
    rooms = {"a": room("a-0", rests=True), "b": room("b-0", rests=True)}
    assert Picture(*CROSSWISE, rooms).dead == set()
    runs, calls = CROSSWISE
    more = [run("w", "b"), run("x", "a")]
    waits = [call("w", "a", 3), call("x", "b", 4)]
    assert Picture([*runs, *more], [*calls, *waits], rooms).dead == {"u", "v", "w", "x"}


def test_a_call_with_a_run_waits_for_that_run() -> None:
    """A chain is no knot, and who is behind a knot is not in it."""
    chain = Picture([run("u", "a"), run("v", "b", asked=1)], [call("u", "b", 1)], ROOMS)
    assert chain.dead == set()
    behind = Picture([*CROSSWISE[0], run("w", "c")], [*CROSSWISE[1], call("w", "b", 3)], ROOMS)
    assert behind.dead == {"u", "v", "w"}
    assert (behind.is_knotted("w"), behind.knots()) == (False, [frozenset({"u", "v"})])


def test_exclusive_keys_and_locks_are_waited_for() -> None:
    """D4: whoever holds the key or the lock has to go first."""
    rooms = {"a": room("a-0", running=8), "b": room("b-0", running=8)}
    runs = [run("u", "a", exclusive="o1"), run("v", "b")]
    lock = Wanted(name="till", by_unit="v", number=3, started_at=0.0, deadline=30.0, granted_at=0.0)
    wanted = Wanted(name="till", by_unit="u", number=4, started_at=0.0, deadline=30.0)
    calls = [call("v", "a", 2, task="move", key="o1")]
    assert Picture(runs, [*calls, wanted], rooms, locks=[lock]).dead == {"u", "v"}
    assert Picture(runs, [*calls, wanted], rooms).dead == set()


def test_in_doubt_whatever_may_stand_in_the_way_does() -> None:
    """A run that has just ended, an instance of which nobody knows how it stands, and a call by skill."""
    gone = [run("u", "a"), run("v", "b", ended=True)]
    assert Picture(gone, [call("u", "b", 1)], ROOMS, in_doubt=True).dead == {"u"}
    unsound = {**ROOMS, "b": room("b-0", "b-1", sound=False)}
    assert Picture(*CROSSWISE, unsound, in_doubt=True).is_knotted("u")
    by_skill = [call("u", "skill:look", 1), call("v", "a", 2)]
    assert Picture(CROSSWISE[0], by_skill, ROOMS, in_doubt=True).is_knotted("u")
    assert not Picture(CROSSWISE[0], by_skill, ROOMS).is_knotted("u")
