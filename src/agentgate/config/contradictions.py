"""Settings that are allowed and still make no sense together, each with the reason (REQUIREMENTS I7)."""

from __future__ import annotations

from typing import Final

from agentgate.config.settings import MEMORY, Settings
from agentgate.server.options import LOOPBACK_HOSTS

FACTOR_LOW: Final = 1.4  # below it, ordinary spread counts as time-out
PROBES_BEFORE_SILENCE: Final = 2


def warnings(settings: Settings) -> list[str]:
    """One sentence each; nothing here stops a gate from starting."""
    found: list[str] = []
    if settings.store.url == MEMORY:
        found.append("store is memory: a restart forgets every key, so repeats run again")
    if settings.timeout.safety_factor < FACTOR_LOW:
        found.append(
            f"dynamic_timeout.safety_factor {settings.timeout.safety_factor:g} is below {FACTOR_LOW}: "
            "ordinary spread will count as time-out"
        )
    if settings.ledger.ttl_s < settings.calls.root_deadline_s:
        found.append("idempotency.ttl_hours is shorter than a call may take: a record ends before its chain does")
    if settings.calls.recovery_s < settings.presence.expected_s:
        found.append(
            "calls.recovery_seconds is shorter than presence.expected_seconds: "
            "work of agents that are still expected is called unknown"
        )
    if settings.presence.silent_s < PROBES_BEFORE_SILENCE * settings.agents.probe_s:
        found.append(
            f"presence.silent_seconds is shorter than {PROBES_BEFORE_SILENCE} times agents.probe_seconds: "
            "one late probe takes an HTTP agent away"
        )
    if settings.mechanisms["idempotency"] == "off":
        found.append("idempotency is off: a repeated key runs again")
    if settings.server.host not in LOOPBACK_HOSTS:
        found.append(
            f"server.host {settings.server.host}: the gate speaks plain HTTP, so tokens and payloads can be read on "
            "the way; put a proxy that speaks TLS in front of it"
        )
    return found
