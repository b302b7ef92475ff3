"""What the server shows of a running gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from agentgate.core.lock import LockTicket
from agentgate.directory import AgentInfo, Directory, InstanceInfo
from agentgate.gateway.gateway import Gateway
from agentgate.model import LockPlace, LockView, plain, qualified, tenant_of
from agentgate.ports.clock import Clock
from agentgate.runtime.span_buffer import SpanBuffer
from agentgate.server.wait_pictures import WaitPictures


@dataclass(frozen=True, kw_only=True, slots=True)
class GateView:
    """The parts of a gate that the server asks; `running` counts calls that have no outcome yet."""

    gateway: Gateway
    directory: Directory
    spans: SpanBuffer
    clock: Clock

    @property
    def waits(self) -> WaitPictures:
        """Who waits for whom."""
        return WaitPictures(self.gateway, self.clock)

    def running(self) -> int:
        """Calls that have no outcome yet, or requests to agents whose answers would get lost."""
        calls = len(self.gateway.front) + sum(len(peer.calls) for peer in self.gateway.peers.connected)
        return max(calls, self.gateway.http_agents.running)

    def agents(self, tenant: str) -> list[AgentInfo]:
        """A tenant's agents; of HTTP instances, with what has come back from them."""
        return [
            replace(agent, instances=tuple(self._as_answered(tenant, instance) for instance in agent.instances))
            for agent in self.directory.agents(tenant)
        ]

    def _as_answered(self, tenant: str, instance: InstanceInfo) -> InstanceInfo:
        known = self.gateway.http_agents.get(qualified(tenant, instance.instance))
        if known is None:
            return instance
        if known.answered_at is None:
            state = "registered" if instance.state == "connected" else instance.state
            return replace(instance, state=state, trouble=known.trouble)
        answered_s = round(self.clock.now() - known.answered_at, 3)
        return replace(instance, answered_s=answered_s, trouble=known.trouble)

    def breakers(self, tenant: str) -> list[dict[str, Any]]:
        """Every breaker of a tenant, times as seconds from now."""
        now = self.clock.now()
        return [
            {
                "agent": plain(breaker.agent),
                "task_type": breaker.task_type,
                "state": breaker.state,
                "state_s": round(now - breaker.since, 3),
                "tries_again_in_s": None if breaker.reopens_at is None else round(max(0, breaker.reopens_at - now), 3),
                "ok": breaker.ok,
                "faults": breaker.faults,
                "slow": breaker.slow,
                "rejected": breaker.rejected,
                "ratio": round(breaker.ratio, 4),
                "opened": breaker.opened,
            }
            for breaker in self.gateway.policies.breakers.states(now)
            if tenant_of(breaker.agent) == tenant
        ]

    def locks(self, tenant: str) -> list[LockView]:
        """Every lock of a tenant that is held or waited for. Who keeps one and waits for others counts as waiting."""
        now = self.clock.now()
        return [
            LockView(
                name=plain(name),
                held=tuple(_place(ticket, now) for ticket in lock.has if not ticket.waiting),
                waiting=tuple(_place(ticket, now) for ticket in (*lock.has, *lock.line) if ticket.waiting),
            )
            for name, lock in self.gateway.policies.locks.standing().items()
            if tenant_of(name) == tenant
        ]


def _place(ticket: LockTicket, now: float) -> LockPlace:
    return LockPlace(
        id=ticket.id,
        owner=ticket.owner,
        instance=plain(ticket.process),
        unit=ticket.unit,
        mode=ticket.mode,
        scope=ticket.scope,
        since_s=round(now - ticket.since, 3),
        epoch=None if ticket.waiting else ticket.epoch,
        lease_s=None if ticket.waiting else round(max(0.0, ticket.lease_ends_at - now), 3),
        waits_s=round(max(0.0, ticket.deadline - now), 3) if ticket.waiting else None,
    )
