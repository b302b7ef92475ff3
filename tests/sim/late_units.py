"""An agent whose units may hang, and somebody who calls it, on a gate with the watchdog."""

from __future__ import annotations

import asyncio
from typing import Any

from agentgate.app import Platform
from agentgate.config import Settings
from agentgate.config.mechanisms import default_modes
from agentgate.core.policy import Mode
from agentgate.model import Finding, KeyId, Skill
from tests.sim.wire_peer import Invoked, WirePeer

PAY = Skill(task_type="pay", timeout_s=3.0)  # asked after at 6 s, given up at 9 s and a bit
SHIP = Skill(task_type="ship", timeout_s=3.0, degraded=True)
STAND_IN = Skill(task_type="degraded:ship", effect="read")
ASK = Skill(task_type="ask", timeout_s=3.0, rests=True)
LOOK = Skill(task_type="look", effect="read", timeout_s=3.0)
SLOW = Skill(task_type="slow", timeout_s=60.0)
LONG = Skill(task_type="long", effect="read", timeout_s=60.0)
SKILLS = (PAY, SHIP, STAND_IN, ASK, LOOK, SLOW)


def switched(mode: Mode, **modes: Mode) -> Settings:
    return Settings(mechanisms={**default_modes(), "watchdog": mode, **modes})


def team(platform: Platform) -> tuple[WirePeer, WirePeer]:
    """An agent with all skills, and somebody who calls it."""
    agent = WirePeer(platform, "agent", skills=SKILLS).connect()
    agent.health = {}
    return agent, WirePeer(platform, "shop").connect()


def found(platform: Platform, kind: str) -> list[Finding]:
    return [finding for finding in platform.gateway.findings.of("default") if finding.kind == kind]


def is_at_rest(platform: Platform) -> bool:
    """Whether nothing is left of all units, their waits and their keys."""
    gateway = platform.gateway
    return (len(gateway.units), len(gateway.flights), len(gateway.policies.graph), len(gateway.resting)) == (0, 0, 0, 0)


async def forgotten(platform: Platform) -> None:
    """The watchdog forgets at its next look."""
    await asyncio.sleep(2)
    assert platform.gateway.watching is not None
    assert len(platform.gateway.watching) == 0
    assert is_at_rest(platform)


def key_of(business_key: str, task_type: str = "pay") -> KeyId:
    return KeyId("default", "agent", "shop", task_type, business_key, "run")


async def answer_all(peer: WirePeer, value: Any) -> None:
    while True:
        peer.answer(await peer.next(), value)


def child(peer: WirePeer, unit: Invoked, target: str, payload: Any) -> Any:
    return peer.read(target, payload, token=unit.params.token)
