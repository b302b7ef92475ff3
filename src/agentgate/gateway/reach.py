"""How an instance is reached, over the link it holds or by a request to its endpoint, and what it is told of a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgate.core.keys import told_key
from agentgate.core.traceparent import format_traceparent
from agentgate.core.unit_token import UnitClaim
from agentgate.model.link import InvokeParams

if TYPE_CHECKING:
    from agentgate.core.unit_token import UnitTokens
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.http_agents import HttpAgents
    from agentgate.gateway.http_dispatch import HttpDispatch
    from agentgate.gateway.peers import Peers
    from agentgate.gateway.units import Unit
    from agentgate.model.link import StopKind
    from agentgate.ports.clock import Clock


class Reach:
    """One way for all units; `http` and `dispatch` are set once, by the gateway, which builds them from its units."""

    http: HttpAgents
    dispatch: HttpDispatch

    def __init__(self, peers: Peers, tokens: UnitTokens, clock: Clock, counters: Counters) -> None:
        self._peers = peers
        self._tokens = tokens
        self._clock = clock
        self._counters = counters

    def invoke(self, unit: Unit) -> bool:
        """Hand a unit to its instance; False when that is not there."""
        self._counters.messages += 1
        params = self._params(unit)
        if self.http.get(unit.instance) is not None:
            return self.dispatch.invoke(unit, params)
        return self._peers.invoke(unit, params)

    def send_stop(self, unit: Unit, kind: StopKind, reason: str) -> None:
        """Tell a unit's instance to stop it."""
        if self.http.get(unit.instance) is not None:
            self.dispatch.send_stop(unit, kind, reason)
        else:
            self._peers.send_stop(unit, kind, reason)

    def probe(self, instance: str, units: tuple[str, ...]) -> bool:
        """Ask an instance how these units are; False: it is one that cannot be asked."""
        if self.http.get(instance) is not None:
            return False
        self._peers.probe(instance, units)
        return True

    def zombies_found(self, instance: str, zombies: int) -> None:
        """So many units of an instance did not stop."""
        agent = self.http.get(instance)
        if agent is not None:
            self.dispatch.zombies_found(agent, zombies)
        else:
            self._peers.zombies_found(instance, zombies)

    def _params(self, unit: Unit) -> InvokeParams:
        """What the instance is told, with a token that says what the unit is part of."""
        call = unit.call
        claim = UnitClaim(unit.id, call.parent_unit, call.trace_id, call.depth, unit.epoch, call.user)
        return InvokeParams(
            task_type=call.task_type,
            caller=call.caller,
            payload=call.payload,
            business_key=call.business_key,
            action=call.action,
            effect=call.effect,
            key=told_key(call),
            remaining_ms=max(0, int((call.deadline - self._clock.now()) * 1000)),
            token=self._tokens.issue(claim),
            traceparent=format_traceparent(call.trace_id, unit.span_id),
            attempt=call.attempt,
            unrecorded=call.keyed and not unit.keyed,
        )
