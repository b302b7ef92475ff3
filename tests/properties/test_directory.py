"""Who is there, driven by any order of events: routes, listeners and versions always tell the same story."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.directory import CardOptions, Directory, DirectoryOptions
from agentgate.directory.directory import VERSION_BLOCK
from agentgate.errors import StoreBroke
from agentgate.model import Card, RouteSnapshot, Skill
from agentgate.testing.loop import run_virtual


class HandClock:
    """Time that a test moves by hand."""

    def __init__(self, now: float = 0.0) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return self.time


class LoopClock:
    """The virtual loop's time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return self.now()


class Witness:
    """A listener that believes what it is told, and nothing else."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.state: dict[str, str] = {}
        self.concurrency: dict[str, int] = {}

    def instance_joined(self, agent: str, instance: str, card: Card) -> None:
        self.concurrency[instance] = card.concurrency
        self._note("joined", instance)

    def instance_away(self, agent: str, instance: str) -> None:
        self._note("away", instance)

    def instance_draining(self, agent: str, instance: str) -> None:
        self._note("draining", instance)

    def instance_lost(self, agent: str, instance: str) -> None:
        self._note("lost", instance)

    def _note(self, what: str, instance: str) -> None:
        self.told.append((what, instance))
        self.state[instance] = what


def card(agent: str, *task_types: str, **more: Any) -> Card:
    return Card(agent=agent, skills=tuple(Skill(task_type=task_type) for task_type in task_types), **more)


def watched(clock: HandClock, **more: Any) -> tuple[Directory, Witness]:
    directory, witness = Directory(clock, **more), Witness()
    directory.listen(witness)
    return directory, witness


def move(directory: Directory, clock: HandClock, until: float) -> None:
    """Let time pass as the timer would: a tick at every deadline on the way."""
    while (deadline := directory.next_deadline()) is not None and deadline <= until:
        clock.time = max(clock.time, deadline)
        directory.tick()
    clock.time = until


# --- any history

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


# --- union of cards


def test_the_agents_card_is_the_union_and_the_first_wins() -> None:
    """Skills of all instances, the largest concurrency, the tier of the earliest; differences are counted."""
    directory = Directory(HandClock())
    slow = Skill(task_type="reserve", timeout_s=9.0)
    directory.hello("default", card("stock", "reserve", tier="core", concurrency=2), "i1")
    directory.hello("default", Card(agent="stock", skills=(slow, Skill(task_type="count")), concurrency=5), "i2")
    route = directory.resolve("default", "stock")
    assert route is not None
    assert (route.card.tier, route.card.concurrency) == ("core", 5)
    assert [(skill.task_type, skill.timeout_s) for skill in route.card.skills] == [("count", None), ("reserve", None)]
    assert directory.findings == {"tier": 1, "skill": 1}


def test_when_the_first_leaves_the_next_decides() -> None:
    """After a rolling update the card is that of the instances which are there."""
    directory = Directory(HandClock())
    directory.hello("default", card("stock", "reserve", tier="core"), "i1")
    directory.hello("default", card("stock", "count"), "i2")
    directory.gone("i1")
    route = directory.resolve("default", "stock")
    assert route is not None
    assert (route.card.tier, route.card.skill("reserve")) == ("standard", None)
    assert directory.resolve("default", "skill:reserve") is None


def test_equal_cards_are_kept_once() -> None:
    """A thousand instances of one agent share one card in memory."""
    directory = Directory(HandClock())
    for number in range(5):
        directory.hello("default", card("stock", "reserve", concurrency=3), f"i{number}")
    assert len({id(i.card) for a in directory._agents.values() for i in a.instances.values()}) == 1  # noqa: SLF001 - sharing is not visible from outside


def test_tenants_do_not_see_each_other() -> None:
    """An agent of one tenant is no route of another."""
    directory = Directory(HandClock())
    directory.hello("a", card("stock", "reserve"), "i1")
    assert directory.resolve("b", "stock") is None
    assert directory.resolve("b", "skill:reserve") is None
    with pytest.raises(ValueError, match="the instance 'i1' belongs to the agent 'stock' already"):
        directory.hello("b", card("stock"), "i1")


# --- bounds and bad cards


def test_the_directory_is_bounded() -> None:
    """Beyond its bounds a hello is refused with a sentence; who is in stays in, and a freed place is given again."""
    directory = Directory(HandClock(), DirectoryOptions(agents_max=2, instances_max=2))
    directory.hello("default", card("a"), "i1")
    directory.hello("default", card("a"), "i2")
    with pytest.raises(ValueError, match="'a' has 2 instances already, no more are taken"):
        directory.hello("default", card("a"), "i3")
    directory.hello("default", card("b"), "i3")
    with pytest.raises(ValueError, match="the directory is full: it holds 2 agents"):
        directory.hello("default", card("c"), "i4")
    directory.gone("i3")
    directory.hello("default", card("c"), "i4")


LONG = "x" * 129
BAD_CARDS = [
    (card(""), "the agent's name is ''; it may not be empty or begin or end with white space"),
    (card(" a"), "the agent's name is ' a'; it may not be empty or begin or end with white space"),
    (card(LONG), "the agent's name is 129 characters long, at most 128 are allowed"),
    (card("a\nb"), "the agent's name is 'a\\nb'; only printable characters are allowed"),
    (card("a\x00"), "the agent's name is 'a\\x00'; only printable characters are allowed"),
    (card("a\u202eb"), "the agent's name is 'a\\u202eb'; only printable characters are allowed"),
    (card("skill:a"), "the agent's name 'skill:a' contains ':', which separates the parts of a key"),
    (card("a", concurrency=0), "concurrency must be between 1 and 10000, not 0"),
    (card("a", concurrency=10_001), "concurrency must be between 1 and 10000, not 10001"),
    (card("a", version="1\n"), "the version is '1\\n'; it may not be empty or begin or end with white space"),
    (card("a", "b", "b"), "the card declares 'b' twice"),
    (card("a", "check:b"), "'check:b' is the name of a check, and a check has to be declared a read"),
    (card("a", "b\t"), "a task type is 'b\\t'; it may not be empty or begin or end with white space"),
    (card("a", *map(str, range(201))), "the card has 201 skills, at most 200 are allowed"),
    (
        Card(agent="a", skills=(Skill(task_type="b", compensate=""),)),
        "the compensation of 'b' is ''; it may not be empty or begin or end with white space",
    ),
    *(
        (
            Card(agent="a", skills=(Skill(task_type="b", timeout_s=timeout_s),)),
            f"timeout_s of 'b' must be above 0 and at most 86400 seconds, not {timeout_s}",
        )
        for timeout_s in (0.0, -1.0, 86_400.5, float("inf"), float("nan"))
    ),
    (
        Card(agent="a", skills=(Skill(task_type="b", input_schema={"title": "x" * 65_536}),)),
        "a schema of 'b' is 65548 bytes long, at most 65536 are allowed",
    ),
    (
        Card(agent="a", skills=tuple(Skill(task_type=str(n), output_schema={"title": "x" * 65_000}) for n in range(5))),
        "the card is 325",
    ),
]


@pytest.mark.parametrize(("bad", "sentence"), BAD_CARDS)
def test_a_bad_card_is_refused_with_a_sentence(bad: Card, sentence: str) -> None:
    """A card that breaks a rule raises `ValueError`, says which rule, and leaves no trace."""
    directory, witness = watched(HandClock())
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        directory.hello("default", bad, "i1")
    assert (directory.agents(), witness.told, directory.snapshot().version) == ([], [], 0)


def test_an_instance_needs_a_name_too() -> None:
    """The name of an instance is checked like every other name."""
    with pytest.raises(ValueError, match="the instance is ''"):
        Directory(HandClock()).hello("default", card("a"), "")


@given(st.text(min_size=1, max_size=128))
def test_any_printable_name_is_accepted(name: str) -> None:
    """F134: markup is a name like any other; what is refused is what cannot be shown, or would blur a key."""
    accepted = name == name.strip() and name.isprintable() and ":" not in name
    try:
        Directory(HandClock()).hello("default", card(name), "i1")
    except ValueError:
        assert not accepted
    else:
        assert accepted


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: DirectoryOptions(agents_max=0), "agents_max must be a number at least 1, not 0"),
        (lambda: DirectoryOptions(instances_max=0), "instances_max must be a number at least 1, not 0"),
        (lambda: DirectoryOptions(save_delay_s=-1), "save_delay_s must be a number from 0 to 60, not -1"),
        (lambda: DirectoryOptions(save_delay_s=61), "save_delay_s must be a number from 0 to 60, not 61"),
        (lambda: CardOptions(skills_max=0), "skills_max must be a number at least 1, not 0"),
    ],
)
def test_options_are_checked(build: Callable[[], object], sentence: str) -> None:
    """An option that makes no sense is refused when it is made."""
    with pytest.raises(ValueError, match=sentence):
        build()


# --- over restarts


def test_a_restarted_gate_expects_who_was_there() -> None:
    """A8: after a restart an agent is a route for 10 s; who comes back is told as joined, who does not as lost."""
    before = Directory(HandClock())
    before.hello("default", card("stock", "reserve"), "i1")
    before.hello("default", card("stock", "reserve"), "i2")
    before.hello("default", card("order", "confirm"), "i3")
    clock = HandClock(500.0)
    directory, witness = watched(clock)
    directory.restore(before.snapshot())
    for target in ("stock", "order", "skill:reserve"):
        assert directory.resolve("default", target) is not None
    directory.hello("default", card("stock", "reserve"), "i2")
    directory.seen("i1")
    move(directory, clock, 505.0)
    directory.seen("i2")
    move(directory, clock, 510.0)
    assert witness.told == [("joined", "i2"), ("lost", "i3"), ("lost", "i1")]
    assert [agent.agent for agent in directory.agents()] == ["stock"]


def test_what_an_instance_says_now_counts_before_what_is_remembered() -> None:
    """A new process with a new card decides at once, although remembered ones of before the restart may come back."""
    directory = Directory(HandClock())
    old = Directory(HandClock())
    old.hello("default", card("stock", "reserve", tier="core"), "i1")
    directory.restore(old.snapshot())
    directory.hello("default", card("stock", "reserve"), "i2")
    route = directory.resolve("default", "stock")
    assert route is not None
    assert route.card.tier == "standard"
    assert directory.findings == {}


def test_a_route_without_instances_is_not_remembered() -> None:
    """A stored agent of which no instance is named cannot come back, so it is no route."""
    directory = Directory(HandClock())
    stored = Directory(HandClock())
    stored.hello("default", card("stock"), "i1")
    snapshot = stored.snapshot()
    empty = RouteSnapshot(version=7, routes=(type(snapshot.routes[0])(card=card("stock")),))
    directory.restore(empty)
    assert (directory.resolve("default", "stock"), directory.agents()) == (None, [])


@given(st.integers(0, 3 * VERSION_BLOCK), st.integers(0, 5))
def test_versions_of_two_lives_never_meet(stored: int, unsaved: int) -> None:
    """Versions grow across restarts, also over the changes that the last life could not save."""
    directory = Directory(HandClock())
    directory.restore(RouteSnapshot(version=stored))
    assert directory.snapshot().version > stored + unsaved or stored % VERSION_BLOCK >= VERSION_BLOCK - unsaved - 1


# --- beside the loop


async def live_for(seconds: float) -> tuple[list[tuple[str, str]], list[int]]:
    """An entered directory with two agents: one beats, one is silent from the start."""
    saved: list[int] = []

    async def save(snapshot: RouteSnapshot) -> None:
        saved.append(len(snapshot.routes))

    async def load() -> RouteSnapshot:
        return RouteSnapshot()

    witness = Witness()
    directory = Directory(LoopClock(), save=save, load=load)
    directory.listen(witness)
    async with directory:
        directory.hello("default", card("loud"), "i1")
        directory.hello("default", card("quiet"), "i2")
        for _ in range(int(seconds)):
            await asyncio.sleep(1.0)
            directory.seen("i1")
    return witness.told, saved


def test_the_timer_finds_who_is_silent_and_the_saver_saves_waves() -> None:
    """Entered, the directory needs no tick from outside, and saves a wave of registrations once."""
    told, saved = run_virtual(live_for, 60.0)
    assert told == [("joined", "i1"), ("joined", "i2"), ("away", "i2"), ("lost", "i2")]
    assert saved == [2, 1]


async def live_with_a_failing_store(failures: int) -> tuple[list[int], float]:
    saved: list[int] = []
    loop = asyncio.get_running_loop()

    async def save(snapshot: RouteSnapshot) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreBroke("disk full")
        saved.append(len(snapshot.routes))

    async with Directory(LoopClock(), save=save) as directory:
        directory.hello("default", card("stock"), "i1")
        if failures < 3:
            await asyncio.sleep(8.0)
    return saved, loop.time()


def test_a_store_that_fails_is_asked_again_and_harms_nobody() -> None:
    """A failed save is repeated until it succeeds, and once more at the end."""
    assert run_virtual(live_with_a_failing_store, 2)[0] == [1]
    assert run_virtual(live_with_a_failing_store, 99) == ([], 0.0)


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


async def leave_with_a_hanging_store() -> float:
    async def save(_: RouteSnapshot) -> None:
        await asyncio.sleep(1e6)

    async with Directory(LoopClock(), save=save) as directory:
        directory.hello("default", card("stock"), "i1")
        await asyncio.sleep(1.0)
    return asyncio.get_running_loop().time()


def test_a_store_that_hangs_does_not_hold_up_the_end() -> None:
    """Leaving gives the last save two seconds, no more."""
    assert run_virtual(leave_with_a_hanging_store) == 3.0
