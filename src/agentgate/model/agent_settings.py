"""What operators have set for an agent while the gate runs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class SwitchedOff(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who switched an agent off, when (seconds since the epoch), and why."""

    by: str
    at: float
    reason: str


class AgentQuota(Struct, frozen=True, kw_only=True):
    """So many cost units may be asked of an agent in any `per_s` seconds, by all callers together."""

    units: float
    per_s: float


class AgentSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What operators have set for one agent; kept with its route, also while no instance of it is there."""

    off: SwitchedOff | None = None
    quota: AgentQuota | None = None


AS_DECLARED: Final = AgentSettings()  # nobody has set anything
