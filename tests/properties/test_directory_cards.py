"""What a card may say, and how the cards of one agent's instances become one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.directory import CardOptions, Directory, DirectoryOptions
from agentgate.model import Card, Skill, qualified
from tests.properties.directory_kit import HandClock, card, watched

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
    """I6: an agent of one tenant is no route of another, also when agents and processes have the same names."""
    directory = Directory(HandClock())
    directory.hello("a", card("stock", "reserve"), qualified("a", "i1"))
    directory.hello("default", card("till"), "i1")
    assert directory.resolve("b", "stock") is None
    assert directory.resolve("b", "skill:reserve") is None
    directory.hello("b", card("stock"), qualified("b", "i1"))
    directory.gone(qualified("b", "i1"))
    for tenant, agents in (("a", ["stock"]), ("b", []), ("default", ["till"])):
        routes = directory.snapshot(tenant).routes
        assert [(route.tenant, route.agent, route.instances) for route in routes] == [
            (tenant, agent, ("i1",)) for agent in agents
        ]
        assert [info.agent for info in directory.agents(tenant)] == agents
        assert directory.snapshot(tenant) is directory.snapshot(tenant)  # made once a version
    assert [route.instances for route in directory.snapshot().routes] == [("a\x1fi1",), ("i1",)]


def test_a_process_belongs_to_one_agent() -> None:
    """I6: a process that is one agent's is refused as another's, with the names as its tenant knows them."""
    directory = Directory(HandClock())
    directory.hello("a", card("stock"), qualified("a", "i1"))
    with pytest.raises(ValueError, match="the instance 'i1' belongs to the agent 'stock' already"):
        directory.hello("a", card("till"), qualified("a", "i1"))


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
    (
        card("a", "degraded:b"),
        "'degraded:b' is the name of a degraded handler, and a degraded handler has to be declared a read",
    ),
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
        Card(agent="a", skills=(Skill(task_type="b", promises=("sent", "")),)),
        "a promise of 'b' is ''; it may not be empty or begin or end with white space",
    ),
    (
        Card(agent="a", skills=(Skill(task_type="b", promises=tuple(map(str, range(17)))),)),
        "'b' promises 17 signals, at most 16 are allowed",
    ),
    (
        Card(agent="a", skills=(Skill(task_type="b", effect="read", exclusive="business_key"),)),
        "'b' is a read and exclusive; what changes nothing may run beside itself",
    ),
    *(
        (Card(agent="a", skills=(Skill(task_type="b", cost=cost),)), f"cost of 'b' must be from 0 to 1e+09, not {cost}")
        for cost in (-1.0, 2e9, float("inf"), float("nan"))
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
