"""Who a request comes from, as far as the gate knows."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from agentgate.model.call import DEFAULT_TENANT

AGENT_SCOPE: Final = "agent:"  # followed by the name of the agent that may speak and register as itself
SUBMIT: Final = "submit"  # make calls under one's own name
OPERATE: Final = "operate"  # change what runs: settle, switch off, set quotas
OBSERVE: Final = "observe"  # read what the gate shows of one's tenant
SCOPES: Final = (SUBMIT, OPERATE, OBSERVE)


class Identity(Struct, frozen=True, kw_only=True):
    """A caller and what it may do.

    `name` is None when nobody checked it: a gate on loopback without tokens takes callers at their word.
    """

    tenant: str = DEFAULT_TENANT
    name: str | None = None
    scopes: frozenset[str] = frozenset()
    is_trusted: bool = False  # on loopback without tokens: everything is allowed

    def may(self, scope: str) -> bool:
        """Whether this scope was given to it."""
        return self.is_trusted or scope in self.scopes

    def may_speak_as(self, agent: str) -> bool:
        """Whether it may register, or serve, as this agent."""
        return self.may(AGENT_SCOPE + agent)


NEIGHBOUR: Final = Identity(is_trusted=True)  # anybody on this machine, while the gate asks for no tokens
