"""What an agent declares about itself."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from agentgate.model.call import Effect

Tier = Literal["core", "standard", "optional"]
Grade = Literal["urgent", "required", "optional"]
Exclusive = Literal["business_key"]

# The default priority of a caller's calls, from its tier (DESIGN 4.3); a client without a card counts as standard.
PRIORITY_BY_TIER: dict[Tier, int] = {"core": 7, "standard": 5, "optional": 2}


class Skill(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task type that an agent handles.

    `repeatable` promises that running twice does no harm. `timeout_s` is the upper clamp of an attempt, its time-out
    while little is known, and the least root deadline. `check` says that the agent also offers the read
    `check:<task_type>`, which tells whether an effect happened, `degraded` that it offers the read
    `degraded:<task_type>`, which answers, without any effect, when the skill does not. `exclusive` says that of all
    calls with one business key one runs at a time, of this and the agent's other skills that say so. `rests` says that
    a unit holds nothing its process is short of, a thread above all, while it waits for something: then its slot is for
    others meanwhile. `cost` is what a call counts for in quotas, in units of the operator's choice. `promises` are the
    signals that each of its units sends about its business key before it ends. Schemas are JSON Schema.
    """

    task_type: str
    effect: Effect = "write"
    repeatable: bool = False
    timeout_s: float | None = None
    grade: Grade = "required"
    compensate: str | None = None
    check: bool = False
    degraded: bool = False
    exclusive: Exclusive | None = None
    rests: bool = False
    cost: float = 1.0
    promises: tuple[str, ...] = ()
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None


class Card(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's declaration, sent by each of its instances; the agent's card is the union."""

    agent: str
    tier: Tier = "standard"
    concurrency: int = 8
    skills: tuple[Skill, ...] = ()
    version: str = ""

    def skill(self, task_type: str) -> Skill | None:
        """The declared skill of that task type, if any."""
        for skill in self.skills:  # several times a call, of a handful: a loop is the cheapest look-up
            if skill.task_type == task_type:
                return skill
        return None


CHECK_PREFIX = "check:"
DEGRADED_PREFIX = "degraded:"
ASIDE_PREFIXES = (CHECK_PREFIX, DEGRADED_PREFIX)  # of reads that the gate itself calls, on behalf of a skill
SKILL_PREFIX = "skill:"  # a target that names a capability, not an agent


def check_type(task_type: str) -> str:
    """The task type under which the check of a skill is called."""
    return CHECK_PREFIX + task_type


def degraded_type(task_type: str) -> str:
    """The task type under which the degraded handler of a skill is called."""
    return DEGRADED_PREFIX + task_type


def served_type(task_type: str) -> str:
    """The skill that a check or a degraded handler stands beside; of any other task type itself."""
    return task_type.partition(":")[2] if task_type.startswith(ASIDE_PREFIXES) else task_type
