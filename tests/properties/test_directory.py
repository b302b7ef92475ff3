"""Who is there, driven by any order of events: routes, listeners and versions always tell the same story."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from agentgate.directory import Directory
from agentgate.model import RouteSnapshot
from tests.properties.directory_kit import HandClock, card, move, watched

CARDS = [
    card("stock", "reserve"),
    card("stock", "reserve", "count", concurrency=3),
    card("store", "reserve"),
    card("order", "confirm", tier="core"),
]
INSTANCES = ["i1", "i2", "i3", "i4"]
TOLD_OF = {"connected": "joined", "draining": "draining", "away": "away", "leaving": "away"}

Step = tuple[str, str, int, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["hello", "seen", "closed", "drain", "gone"]),
        st.sampled_from(INSTANCES),
        st.integers(0, len(CARDS) - 1),
        st.sampled_from([0.0, 0.5, 2.0, 3.0, 6.0, 9.0]),
    ),
    max_size=40,
)


def take(directory: Directory, step: Step) -> None:
    event, instance, number, _ = step
    if event != "hello":
        getattr(directory, event)(instance)
        return
    with contextlib.suppress(ValueError):  # the instance may belong to the other agent already
        directory.hello("default", CARDS[number], instance)


@given(STEPS)
def test_routes_listeners_and_listing_agree_after_any_history(steps: list[Step]) -> None:
    """A1, A8: after every event the routes, the listing and what listeners were told say the same of every instance."""
    clock = HandClock()
    directory, witness = watched(clock)
    for step in steps:
        move(directory, clock, clock.time + step[3])
        take(directory, step)
        states = {i.instance: i.state for agent in directory.agents() for i in agent.instances}
        assert {name: TOLD_OF[state] for name, state in states.items()} == {
            name: told for name, told in witness.state.items() if told != "lost"
        }
        routes = {route.agent: route for route in directory.snapshot().routes}
        assert {name for route in routes.values() for name in route.instances} == set(states)
        assert {name: directory.resolve("default", name) for name in routes} == routes
        assert sum(directory.states().values()) == len(states)


@given(STEPS)
def test_a_version_names_one_content(steps: list[Step]) -> None:
    """Versions only grow, and two snapshots of one version are equal."""
    clock = HandClock()
    directory = Directory(clock)
    seen: dict[int, RouteSnapshot] = {}
    last = 0
    for step in steps:
        move(directory, clock, clock.time + step[3])
        take(directory, step)
        snapshot = directory.snapshot()
        assert snapshot.version >= last
        assert seen.setdefault(snapshot.version, snapshot) == snapshot
        last = snapshot.version


@given(STEPS)
def test_a_capability_leads_to_an_agent_that_declares_it(steps: list[Step]) -> None:
    """A1: `skill:` leads to an agent that declares it, one with an instance that takes calls if there is any."""
    clock = HandClock()
    directory = Directory(clock)
    for step in steps:
        move(directory, clock, clock.time + step[3])
        take(directory, step)
        agents = [a for a in directory.agents() if any(skill.task_type == "reserve" for skill in a.skills)]
        takes_calls = [a.agent for a in agents if any(i.state == "connected" for i in a.instances)]
        route = directory.resolve("default", "skill:reserve")
        if takes_calls:
            assert route is not None
            assert route.agent == min(takes_calls)
        else:
            assert (route is not None) == bool(agents)


@given(STEPS)
def test_silence_leaves_nothing_behind(steps: list[Step]) -> None:
    """A8: when nobody is heard any more, within 9 s every instance is lost, once, and no route is left."""
    clock = HandClock()
    directory, witness = watched(clock)
    for step in steps:
        move(directory, clock, clock.time + step[3])
        take(directory, step)
    move(directory, clock, clock.time + 9.0)
    assert directory.agents() == []
    assert directory.snapshot().routes == ()
    assert directory.next_deadline() is None
    assert directory.resolve("default", "skill:reserve") is None
    assert set(witness.state.values()) <= {"lost"}


# --- literal times


def test_frames_keep_an_instance_and_silence_takes_it() -> None:
    """A8: heard at 5.9, an instance is away at 11.9 and lost at 14.9; its route goes with it."""
    clock = HandClock()
    directory, witness = watched(clock)
    directory.hello("default", card("stock", "reserve"), "i1")
    move(directory, clock, 5.9)
    directory.seen("i1")
    move(directory, clock, 11.899)
    assert witness.told == [("joined", "i1")]
    move(directory, clock, 11.9)
    assert witness.told == [("joined", "i1"), ("away", "i1")]
    assert directory.resolve("default", "stock") is not None
    move(directory, clock, 14.9)
    assert witness.told[-1] == ("lost", "i1")
    assert directory.resolve("default", "stock") is None


def test_an_instance_that_was_only_silent_is_told_as_joined_again() -> None:
    """A8: a frame within the grace time brings the instance back, and listeners hear of it."""
    clock = HandClock()
    directory, witness = watched(clock)
    directory.hello("default", card("stock", concurrency=3), "i1")
    move(directory, clock, 7.0)
    directory.seen("i1")
    assert witness.told == [("joined", "i1"), ("away", "i1"), ("joined", "i1")]
    assert witness.concurrency == {"i1": 3}


def test_a_hello_on_a_new_link_is_told_again() -> None:
    """A second hello of a connected instance tells listeners again, with the new card."""
    directory, witness = watched(HandClock())
    directory.hello("default", card("stock", concurrency=3), "i1")
    directory.hello("default", card("stock", concurrency=5), "i1")
    assert witness.told == [("joined", "i1"), ("joined", "i1")]
    assert witness.concurrency == {"i1": 5}


def test_the_next_instance_takes_over_from_one_that_drains() -> None:
    """A6: the agent keeps its route while one instance drains and another takes calls; a good-bye is final."""
    directory, witness = watched(HandClock())
    directory.hello("default", card("stock"), "i1")
    directory.hello("default", card("stock"), "i2")
    directory.drain("i1")
    directory.gone("i1")
    route = directory.resolve("default", "stock")
    assert route is not None
    assert route.instances == ("i2",)
    assert witness.told[2:] == [("draining", "i1"), ("lost", "i1")]


def test_events_of_nobody_are_ignored() -> None:
    """Frames, closings and good-byes that come after an instance was lost change nothing and raise nothing."""
    directory, witness = watched(HandClock())
    for event in (directory.seen, directory.closed, directory.drain, directory.gone):
        event("nobody")
    assert (witness.told, directory.snapshot().version) == ([], 0)


def test_many_deadlines_cost_what_is_alive() -> None:
    """A link that flaps a thousand times leaves no heap of dead deadlines behind."""
    clock = HandClock()
    directory = Directory(clock)
    directory.hello("default", card("first"), "i0")
    for _ in range(1_000):
        clock.time += 0.0001
        directory.hello("default", card("stock"), "i1")
        directory.closed("i1")
        directory.gone("i1")
    assert directory.next_deadline() == 6.0
    assert len(directory._alarms._heap) <= 100  # noqa: SLF001 - memory is not visible from outside
