"""The entrance: makes a call of what a caller sent, knowing who it is and in which unit it was made.

A deadline inside the gate is absolute and only ever shrinks along a chain: a child ends before its parent does, so
that the parent still has time to use the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentgate.gateway.passage import Passage
from agentgate.model import PRIORITY_BY_TIER, Call, Problem, Tier, qualified

if TYPE_CHECKING:
    from agentgate.core.chain import ChainGuard
    from agentgate.core.locks import Locks
    from agentgate.core.unit_token import UnitTokens
    from agentgate.gateway.options import CallOptions
    from agentgate.gateway.units import Units
    from agentgate.model.link import CallParams
    from agentgate.ports.clock import Chance, Clock
    from agentgate.ports.routes import Routes
    from agentgate.runtime.reporter import Reporter

PRIORITY_MAX: Final = 9
TIMEOUT_MS_MAX: Final = 86_400_000  # a day
TRACE_ID_BYTES: Final = 16
SPAN_ID_BYTES: Final = 8


def seconds_of(milliseconds: int) -> float:
    """A time as a peer has said it, which may be any number."""
    return min(max(milliseconds, 0), TIMEOUT_MS_MAX) / 1000


def inner_s(left_s: float, options: CallOptions) -> float:
    """How long something inside a unit may take that has so much time left: it has to make use of the end."""
    return left_s - max(options.child_margin_s, left_s * options.child_margin_share)


class Entry:
    """Turns the parameters of a `call` into a passage."""

    def __init__(  # noqa: PLR0913 - the parts it asks
        self,
        *,
        clock: Clock,
        chance: Chance,
        routes: Routes,
        guard: ChainGuard,
        tokens: UnitTokens,
        units: Units,
        locks: Locks,
        options: CallOptions,
        findings: Reporter,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._routes = routes
        self._guard = guard
        self._tokens = tokens
        self._units = units
        self._locks = locks
        self._options = options
        self._findings = findings

    def read(
        self,
        call_id: str,
        params: CallParams,
        *,
        tenant: str,
        caller: str,
        instance: str,
        tier: Tier,
        refusal: Problem | None = None,
    ) -> Passage:
        """The passage of one request; what is wrong with it travels along and ends it inside the gate."""
        now = self._clock.now()
        speaker = qualified(tenant, caller)
        came_from = self._guard.attribute(self._tokens, params.token, params.traceparent, speaker, instance)
        if not came_from.linked or (not instance and not params.token and self._has_units(tenant, caller)):
            self._findings.report(
                "unlinked_calls", caller, tenant=tenant, target=params.target, task_type=params.task_type
            )
        deadline = self._deadline(params, tenant, came_from.parent_unit, now)
        own_s = 0.0 if params.timeout_ms is None else seconds_of(params.timeout_ms)
        priority = PRIORITY_BY_TIER[tier] if params.priority is None else params.priority
        call = Call(
            id=call_id,
            target=params.target,
            task_type=params.task_type,
            business_key=params.business_key,
            action=params.action,
            payload=params.payload,
            effect=params.effect,
            heavy=params.heavy,
            priority=min(max(priority, 0), PRIORITY_MAX),
            again=params.again,
            join=params.join,
            on_disconnect=params.on_disconnect,
            awaited=params.awaited,
            tenant=tenant,
            caller=caller,
            user=came_from.user or params.user or caller,
            received_at=now,
            deadline=deadline,
            patience_s=own_s if now + own_s <= deadline else 0.0,
            trace_id=came_from.root or self._chance.token_hex(TRACE_ID_BYTES),
            span_id=self._chance.token_hex(SPAN_ID_BYTES),
            parent_span_id=came_from.parent_span_id,
            parent_unit=came_from.parent_unit,
            depth=came_from.depth,
            linked=came_from.linked,
        )
        refusal = refusal or came_from.refused
        if refusal is None and params.effect == "write" and came_from.parent_unit:
            refusal = self._locks.lost_by(came_from.parent_unit)
        return Passage(call, self._clock.wall(), refusal)

    def _has_units(self, tenant: str, caller: str) -> bool:
        """Whether a caller over HTTP, of whose calls none is known by its process, is an agent at work."""
        route = self._routes.resolve(tenant, caller)
        return route is not None and any(self._units.of_instance(instance) for instance in route.instances)

    def _deadline(self, params: CallParams, tenant: str, parent_unit: str, now: float) -> float:
        if params.timeout_ms is not None:
            own_s = seconds_of(params.timeout_ms)
        else:
            own_s = self._options.root_deadline_s
            route = self._routes.resolve(tenant, params.target)
            skill = route.card.skill(params.task_type) if route is not None else None
            if skill is not None and skill.timeout_s is not None:
                own_s = max(own_s, skill.timeout_s)
            own_s -= seconds_of(params.age_ms)
        return self.deadline_within(parent_unit, own_s, now)

    def deadline_within(self, parent_unit: str, own_s: float, now: float) -> float:
        """When what a unit waits for ends that would take so long by itself: in time for the unit to use the answer."""
        parent = self._units.get(parent_unit) if parent_unit else None
        return now + own_s if parent is None else now + min(own_s, inner_s(parent.call.deadline - now, self._options))
