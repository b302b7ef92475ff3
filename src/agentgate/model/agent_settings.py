"""What operators have set for an agent while the gate runs."""

from __future__ import annotations

from msgspec import Struct

from agentgate.model.call import DEFAULT_TENANT


class AgentQuota(Struct, frozen=True, kw_only=True):
    """So many cost units may be asked of an agent in any `per_s` seconds, by all callers together."""

    units: float
    per_s: float


class AgentSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Holds whoever runs the agent, also while nobody does, and over restarts of the gate."""

    agent: str
    tenant: str = DEFAULT_TENANT
    quota: AgentQuota | None = None
