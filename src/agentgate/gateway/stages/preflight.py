"""Before anything is taken: who is the target, does the request fit it, and would it be let through now?

Every question here is only asked. What is refused here has cost nothing and has written nothing; what passes may
still be refused later, when the permit is really taken.
"""

from __future__ import annotations

from collections.abc import Awaitable
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Final

from msgspec.structs import replace

from agentgate.core.switch import caller_refusal, target_refusal
from agentgate.gateway.stage import answered
from agentgate.model import ASIDE_PREFIXES, SKILL_PREFIX, Call, Card, Outcome, Problem, Route, Skill, problem

if TYPE_CHECKING:
    from agentgate.core.policy import Policy
    from agentgate.gateway.parts import Parts
    from agentgate.gateway.passage import Passage
    from agentgate.gateway.stage import Onward


COMPARED_MAX: Final = 200  # names: looking for the nearest must not cost more than the call
COMPARED_CHARS: Final = 60
NEAR: Final = 0.8  # a slip of the pen, not another agent whose name ends alike


class Preflight:
    """Resolves the target as named to an agent, and asks the policies of the attempt."""

    name: ClassVar[str] = "preflight"
    mechanism: ClassVar[str | None] = None
    stays: ClassVar[bool] = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        asked: list[tuple[str | None, Policy]] = [
            ("cool_down", parts.policies.cool_down),
            ("circuit_breaker", parts.policies.breakers),
            (None, parts.policies.slots),
        ]
        self._asked = [policy for mechanism, policy in asked if parts.mode(mechanism) == "enforce"]

    def __call__(self, passage: Passage, onward: Onward) -> Awaitable[Outcome]:
        """Go onward with a call that knows its agent."""
        refusal = self._resolve(passage) or self._ask(passage)
        return answered(Outcome(error=refusal)) if refusal is not None else onward(passage)

    def _resolve(self, passage: Passage) -> Problem | None:
        call = passage.call
        route = self._parts.routes.resolve(call.tenant, call.target)
        if route is None:
            return problem("no_route", detail=f"no agent answers to {call.target!r}{self._meant(call)}")
        if self._parts.routes.off and (refusal := self._switched_off(route, call)) is not None:
            return refusal
        skill = route.card.skill(call.task_type)
        if skill is None:
            return problem("no_route", detail=_offers(route.card, call.task_type))
        if call.effect == "read" and skill.effect != "read":
            detail = f"{route.agent} does not declare {call.task_type!r} a read; call it with a business key"
            return problem("bad_request", detail=detail)
        passage.skill = skill
        passage.call = replace(
            call,
            agent=route.qualified,
            exclusive=call.business_key if skill.exclusive else "",
            repeatable=skill.repeatable,
            skill_timeout_s=skill.timeout_s,
        )
        return self._fits(skill, route.agent, call.payload)

    def _switched_off(self, target: Route, call: Call) -> Problem | None:
        return target_refusal(target) or caller_refusal(self._parts.routes.resolve(call.tenant, call.caller), call)

    def _meant(self, call: Call) -> str:
        """The nearest agent of the caller's tenant, as a question; only asked where there are few to compare with."""
        routes = self._parts.routes.snapshot(call.tenant).routes
        if len(routes) > COMPARED_MAX or call.target.startswith(SKILL_PREFIX):
            return ""
        return nearest(call.target, [route.agent for route in routes])

    def _fits(self, skill: Skill, agent: str, payload: object) -> Problem | None:
        finding = self._parts.schemas.finding(skill.input_schema, payload)
        if finding is None:
            return None
        return problem("bad_request", detail=f"the payload does not fit {agent}'s {skill.task_type!r}: {finding}")

    def _ask(self, passage: Passage) -> Problem | None:
        now = self._parts.clock.now()
        for policy in self._asked:
            refusal = policy.ask(passage.call, now)
            if refusal is not None:
                if refusal.code == "breaker_open":
                    self._parts.counters.retries_saved += self._parts.attempts_max - passage.attempts
                return refusal
        return None


def _offers(card: Card, task_type: str) -> str:
    names = sorted(skill.task_type for skill in card.skills if not skill.task_type.startswith(ASIDE_PREFIXES))
    shown = ", ".join(names[:20]) or "nothing"
    return f"{card.agent} does not offer {task_type!r}{nearest(task_type, names[:COMPARED_MAX])}; it offers {shown}"


def nearest(name: str, known: list[str]) -> str:
    """`, did you mean …?` if one of these is near."""
    near = get_close_matches(name[:COMPARED_CHARS], known, 1, NEAR)
    return f", did you mean {near[0]!r}?" if near else ""
