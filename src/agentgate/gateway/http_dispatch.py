"""Units at agents that are reached by HTTP: a unit is a request, its answer is the unit's end, and so is its loss.

There is nobody to ask later what became of a request: whatever happens to it, its unit ends here, exactly once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agentgate.core.http_answer import read_answer
from agentgate.gateway.answers import judge
from agentgate.gateway.http_request import invoke_request
from agentgate.model import HttpAnswer, HttpEnd, HttpFailure, failure

if TYPE_CHECKING:
    from agentgate.core.payload import PayloadOptions
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.http_agents import HttpAgent, HttpAgents
    from agentgate.gateway.http_options import HttpAgentOptions
    from agentgate.gateway.schemas import Schemas
    from agentgate.gateway.units import Unit, Units
    from agentgate.model.link import InvokeParams, StopKind
    from agentgate.ports.clock import Clock
    from agentgate.ports.routes import Routes


class HttpDispatch:
    """Hands units to HTTP agents, and settles what comes back."""

    def __init__(  # noqa: PLR0913 - the parts it stands between
        self,
        agents: HttpAgents,
        *,
        units: Units,
        routes: Routes,
        schemas: Schemas,
        clock: Clock,
        counters: Counters,
        options: HttpAgentOptions,
        payload_options: PayloadOptions,
    ) -> None:
        self._agents = agents
        self._units = units
        self._routes = routes
        self._schemas = schemas
        self._clock = clock
        self._counters = counters
        self._late_s = options.late_s
        self._payload_options = payload_options

    def invoke(self, unit: Unit, params: InvokeParams) -> bool:
        """Send the request; False when the instance is not there any more."""
        agent = self._agents.get(unit.instance)
        if agent is None or not agent.is_there:
            return False
        unit.sent = True
        agent.exchanges[unit.id] = agent.upstream.send(
            invoke_request(agent.head(params.task_type), unit.id, params),
            partial(self._ended, agent.instance, unit),
            until=unit.call.deadline + self._late_s,
            may_repeat=not unit.call.keyed or unit.call.repeatable,
        )
        return True

    def send_stop(self, unit: Unit, kind: StopKind, reason: str) -> None:
        """Interrupt a unit by closing its connection. One whose deadline has passed knows that by itself."""
        agent = self._agents.get(unit.instance)
        exchange = agent.exchanges.get(unit.id) if agent is not None else None
        if exchange is None or kind != "cancel":
            return
        sent = exchange.abort()
        self._end(unit, HttpFailure(sent=sent, detail=f"stopped: {reason}"))
        self._forget(unit.instance, unit)

    def zombies_found(self, agent: HttpAgent, zombies: int) -> None:
        """So many units of an instance go on beyond their time; when they would fill it, it gets nothing new."""
        if zombies >= agent.card.concurrency and not agent.is_leaving:
            self._routes.drain(agent.instance)

    def _ended(self, instance: str, unit: Unit, end: HttpEnd) -> None:
        agent = self._agents.get(instance)
        if agent is not None:
            agent.note(end, self._clock.now())
        self._end(unit, end)
        self._forget(instance, unit)

    def _forget(self, instance: str, unit: Unit) -> None:
        agent = self._agents.get(instance)
        if agent is not None:
            agent.exchanges.pop(unit.id, None)
            self._agents.finish(agent)

    def _end(self, unit: Unit, end: HttpEnd) -> None:
        self._counters.http_answers[_class_of(end)] += 1
        said = read_answer(end, self._payload_options, self._clock.wall()) if isinstance(end, HttpAnswer) else end
        if not isinstance(said, HttpFailure):
            self._counters.messages += 1
            finding = self._schemas.finding(unit.output_schema, said.value) if said.error is None else None
            event, outcome = judge(said, unit.call, finding)
            self._units.answered(unit, event, outcome, _nothing)
        elif said.sent:
            self._units.answered(unit, "lost", failure("agent_lost", sent=True, detail=said.detail), _nothing)
        else:
            unit.sent = False
            self._units.unsent(unit, failure("agent_lost", detail=said.detail))


def _class_of(end: HttpEnd) -> str:
    if isinstance(end, HttpAnswer):
        return f"{end.status // 100}xx"
    return "lost" if end.sent else "not_sent"


def _nothing() -> None:
    """Nobody at the other end waits for what is on disk."""
