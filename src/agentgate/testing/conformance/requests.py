"""Requests to a ledger, with everything filled in that a test does not care about."""

from __future__ import annotations

from typing import Any

from agentgate.model import Change, Claim, KeyId, LedgerEvent, Outcome, failure
from agentgate.ports.store import Store

GATEWAY = "gateway"
NOW = 1_800_000_000.0
TTL_S = 86_400.0


def key(business_key: str = "A-1", **parts: str) -> KeyId:
    """A key."""
    base = KeyId("default", "stock", "order", "reserve", business_key, "run")
    return base._replace(**parts)


def claim(business_key: str = "A-1", unit: str = "u1", **fields: Any) -> Claim:
    """A claim."""
    base: dict[str, Any] = {
        "key": key(business_key),
        "fingerprint": "f1",
        "agent": "stock",
        "unit": unit,
        "instance": "i1",
    }
    return Claim(**(base | fields))


def change(event: LedgerEvent, business_key: str = "A-1", unit: str = "u1", **fields: Any) -> Change:
    """A report, with an outcome where it needs one."""
    outcomes = {"done": Outcome(value={"reserved": True}), "failed": failure("rejected", sent=True)}
    base: dict[str, Any] = {
        "key": key(business_key),
        "epoch": 1,
        "unit": unit,
        "event": event,
        "outcome": outcomes.get(event),
    }
    return Change(**(base | fields))


async def claimed(store: Store, *claims: Claim, epoch: int = 1, now: float = NOW) -> list[bool]:
    """Which of these claims are granted."""
    return [answer.granted for answer in await store.claim(claims, GATEWAY, epoch, now)]


async def changed(store: Store, *changes: Change, now: float = NOW) -> list[bool]:
    """Which of these reports count."""
    return [answer.accepted for answer in await store.change(changes, now)]


async def state_of(store: Store, business_key: str = "A-1", now: float = NOW) -> str:
    """The state of a key."""
    [record] = await store.lookup([key(business_key)], now)
    return "none" if record is None else record.state
