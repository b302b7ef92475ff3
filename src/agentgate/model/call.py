"""A call on its way through the gate."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

DEFAULT_TENANT: Final = "default"

Effect = Literal["write", "read"]
OnDisconnect = Literal["cancel", "detach"]


class KeyId(NamedTuple):
    """What makes an idempotency key unique: the parts, never a random string."""

    tenant: str
    target: str  # as named by the caller: an agent, or `skill:reserve`
    caller: str
    task_type: str
    business_key: str
    action: str


class Call(Struct, frozen=True, kw_only=True):
    """One request from a caller to a target, as the gate sees it (the wire form is `model.link.CallParams`).

    Times are monotonic seconds of the gate's clock and absolute. `agent`, `repeatable` and `skill_timeout_s` are
    filled by preflight from the card of the resolved agent; `attempt` (from 1) and `avoid` by the retry loop. `agent`
    and `avoid` are qualified names (`model.names`): what policies keep by them is apart for every tenant.
    """

    id: str
    target: str
    task_type: str
    business_key: str = ""
    action: str = "run"
    payload: Any = None
    effect: Effect = "write"
    heavy: bool = False
    priority: int = 5  # 0 to 9, 9 first
    again: bool = False
    join: bool = True
    on_disconnect: OnDisconnect | None = None
    awaited: bool = True  # the unit it was made in stands still meanwhile; False: only while it says so

    tenant: str = DEFAULT_TENANT
    caller: str = "client"
    user: str = ""  # on whose behalf its root was called, by default the root's caller; the chain inherits it
    received_at: float = 0.0
    deadline: float = 0.0
    patience_s: float = 0.0  # how long its caller said it waits; 0: it said nothing, or its chain has less time left

    trace_id: str = ""  # the chain: shared by everything one root call leads to
    span_id: str = ""
    parent_span_id: str = ""
    parent_unit: str = ""  # the caller's unit, when the call was made inside a handler
    depth: int = 0  # 0 for a root call
    linked: bool = True  # False: made by an agent with open units, but nobody knows by which of them

    agent: str = ""
    exclusive: str = ""  # of its agent's work on this key one runs at a time; filled by preflight, empty: any number
    cost: float = 1.0  # in units of quotas; filled where there are any
    repeatable: bool = False
    skill_timeout_s: float | None = None
    attempt: int = 0
    avoid: str = ""  # the instance that failed the attempt before
    place: int = 0  # queue place taken over from another caller of the same flight; 0: a new one

    @property
    def key_id(self) -> KeyId:
        """The identity of the idempotency key."""
        return KeyId(self.tenant, self.target, self.caller, self.task_type, self.business_key, self.action)

    @property
    def keyed(self) -> bool:
        """Whether the ledger keeps this call: every call that is not a read."""
        return self.effect == "write"
