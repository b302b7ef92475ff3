"""The directory as people and programs read it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agentgate.core.presence import State
from agentgate.model import AgentQuota, Skill, SwitchedOff, Tier


class InstanceInfo(Struct, frozen=True, kw_only=True):
    """One instance: its state, for how long, how long ago it was last heard, and how it is reached.

    An HTTP instance that takes calls and has not answered any request yet, a probe or a call, is `registered` only.
    `answered_s` is how long ago it last answered, and `trouble` what became of a later request that had no answer.
    """

    instance: str
    state: State | Literal["registered"]
    state_s: float
    silent_s: float
    concurrency: int
    version: str
    kind: Literal["link", "http"] = "link"
    endpoint: str = ""
    answered_s: float | None = None
    trouble: str = ""


class AgentInfo(Struct, frozen=True, kw_only=True):
    """One agent: the union of its instances' cards, the instances, and what operators have set."""

    agent: str
    tenant: str
    tier: Tier
    skills: tuple[Skill, ...]
    instances: tuple[InstanceInfo, ...]
    off: SwitchedOff | None = None
    quota: AgentQuota | None = None
