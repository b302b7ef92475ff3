"""What a card may say, and how the cards of one agent's instances become one.

Names come from the other side of a network and end up in keys, logs, metrics and pages, so they are short and
printable; everything that can be long has a limit. A card that breaks a rule is refused with a sentence for whoever
wrote the agent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import msgspec

from agentgate.core.ranges import require
from agentgate.model import ASIDE_PREFIXES, CHECK_PREFIX, SKILL_PREFIX, Card, Skill

CONCURRENCY_MAX: Final = 10_000  # beyond any one process; a larger number is a mistake
TIMEOUT_S_MAX: Final = 86_400.0  # longer work is a task, not a call
COST_MAX: Final = 1e9  # units
PROMISES_MAX: Final = 16  # a skill that says more is several skills


@dataclass(frozen=True, kw_only=True, slots=True)
class CardOptions:
    """How much one instance may declare.

    - `name_length_max`, 128 characters: long enough for any name a person reads.
    - `skills_max`, 200: a card is sent at every connect, and an agent with more task types is several agents.
    - `schema_bytes_max`, 64 KiB: the largest schemas of real tools are a few KiB.
    - `card_bytes_max`, 256 KiB: as large as an ordinary payload, so a card always fits a frame.
    """

    name_length_max: int = 128
    skills_max: int = 200
    schema_bytes_max: int = 65_536
    card_bytes_max: int = 262_144

    def __post_init__(self) -> None:
        require(self, "name_length_max", "skills_max", "schema_bytes_max", "card_bytes_max", low=1)


def check_card(card: Card, options: CardOptions, *, by_http: bool = False) -> None:
    """Raises `ValueError` with a sentence when the card cannot be accepted."""
    _check_agent_name(card.agent, options)
    if not 1 <= card.concurrency <= CONCURRENCY_MAX:
        raise ValueError(f"concurrency must be between 1 and {CONCURRENCY_MAX}, not {card.concurrency}")
    if card.version:
        _check_name("the version", card.version, options)
    if len(card.skills) > options.skills_max:
        raise ValueError(f"the card has {len(card.skills)} skills, at most {options.skills_max} are allowed")
    counts = Counter(skill.task_type for skill in card.skills)
    if twice := sorted(task_type for task_type, count in counts.items() if count > 1):
        raise ValueError(f"the card declares {twice[0]!r} twice")
    for skill in card.skills:
        _check_skill(skill, options)
        if by_http and skill.promises:
            raise ValueError(f"{skill.task_type!r} promises signals, which an agent without a link cannot send")
    if (size := _json_size(card)) > options.card_bytes_max:
        raise ValueError(f"the card is {size} bytes long, at most {options.card_bytes_max} are allowed")


def check_instance(instance: str, options: CardOptions) -> None:
    """Raises `ValueError` when this cannot be the name of an instance."""
    _check_name("the instance", instance, options)


def union(cards: Sequence[Card]) -> Card:
    """The agent's card: what the earliest instance says, the skills of all, the largest concurrency of one."""
    first = cards[0]
    skills = {skill.task_type: skill for card in reversed(cards) for skill in card.skills}
    return msgspec.structs.replace(
        first,
        concurrency=max(card.concurrency for card in cards),
        skills=tuple(skills[task_type] for task_type in sorted(skills)),
    )


def differences(card: Card, other: Card) -> list[str]:
    """What two instances of one agent disagree about: `tier`, or `skill:<task_type>` declared in two ways.

    Different versions, concurrencies and sets of skills are what a rolling update looks like, and no finding.
    """
    twins = {skill.task_type: skill for skill in other.skills}
    differ = [SKILL_PREFIX + skill.task_type for skill in card.skills if twins.get(skill.task_type, skill) != skill]
    return ["tier", *differ] if card.tier != other.tier else differ


def _check_agent_name(name: str, options: CardOptions) -> None:
    _check_name("the agent's name", name, options)
    if ":" in name:
        raise ValueError(f"the agent's name {name!r} contains ':', which separates the parts of a key")


def _check_skill(skill: Skill, options: CardOptions) -> None:
    _check_name("a task type", skill.task_type, options)
    if skill.task_type.startswith(ASIDE_PREFIXES) and skill.effect != "read":
        kind = "check" if skill.task_type.startswith(CHECK_PREFIX) else "degraded handler"
        raise ValueError(f"{skill.task_type!r} is the name of a {kind}, and a {kind} has to be declared a read")
    if skill.exclusive and skill.effect == "read":
        raise ValueError(f"{skill.task_type!r} is a read and exclusive; what changes nothing may run beside itself")
    if len(skill.promises) > PROMISES_MAX:
        raise ValueError(
            f"{skill.task_type!r} promises {len(skill.promises)} signals, at most {PROMISES_MAX} are allowed"
        )
    for name in skill.promises:
        _check_name(f"a promise of {skill.task_type!r}", name, options)
    if skill.compensate is not None:
        _check_name(f"the compensation of {skill.task_type!r}", skill.compensate, options)
    timeout_s = skill.timeout_s
    if timeout_s is not None and not (isfinite(timeout_s) and 0 < timeout_s <= TIMEOUT_S_MAX):
        raise ValueError(
            f"timeout_s of {skill.task_type!r} must be above 0 and at most {TIMEOUT_S_MAX:g} seconds, not {timeout_s}"
        )
    if not 0 <= skill.cost <= COST_MAX:  # also what is no number at all
        raise ValueError(f"cost of {skill.task_type!r} must be from 0 to {COST_MAX:g}, not {skill.cost}")
    for schema in (skill.input_schema, skill.output_schema):
        _check_schema(skill.task_type, schema, options)


def _check_schema(task_type: str, schema: dict[str, Any] | None, options: CardOptions) -> None:
    if schema is not None and (size := _json_size(schema)) > options.schema_bytes_max:
        raise ValueError(
            f"a schema of {task_type!r} is {size} bytes long, at most {options.schema_bytes_max} are allowed"
        )


def _check_name(what: str, name: str, options: CardOptions) -> None:
    if not name or name != name.strip():
        raise ValueError(f"{what} is {name!r}; it may not be empty or begin or end with white space")
    if len(name) > options.name_length_max:
        raise ValueError(f"{what} is {len(name)} characters long, at most {options.name_length_max} are allowed")
    # `isprintable` leaves out control characters, surrogates, and the invisible ones that reorder or hide text.
    if not name.isprintable():
        raise ValueError(f"{what} is {name!r}; only printable characters are allowed")


def _json_size(value: object) -> int:
    return len(msgspec.json.encode(value))
