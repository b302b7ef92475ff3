"""Something that somebody should look at: seen while calls went on, and never a reason to stop one by itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agentgate.model.call import DEFAULT_TENANT


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was noticed, however often; `count` says how often, the evidence is that of the last time.

    `subject` names what it is about: an agent, or `caller > target.task_type`. Times in seconds since the epoch.
    """

    kind: str
    subject: str
    tenant: str = DEFAULT_TENANT
    evidence: dict[str, Any]
    advice: str
    count: int
    first_seen: float
    last_seen: float
