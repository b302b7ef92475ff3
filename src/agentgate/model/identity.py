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

    `name` is None when nobody checked it: a gate on loopback without tokens takes callers at their word. `token` is
    the id of the token that showed it; never its secret.
    """

    tenant: str = DEFAULT_TENANT
    name: str | None = None
    scopes: frozenset[str] = frozenset()
    token: str = ""
    is_trusted: bool = False  # on loopback without tokens: everything is allowed

    def may(self, scope: str) -> bool:
        """Whether this scope was given to it."""
        return self.is_trusted or scope in self.scopes

    def may_call(self) -> bool:
        """Whether it may make calls at all: under its name, or as the agent of that name."""
        return self.may(SUBMIT) or (self.name is not None and self.may_speak_as(self.name))

    def may_speak_as(self, agent: str) -> bool:
        """Whether it may register, serve and call as this agent."""
        return self.may(AGENT_SCOPE + agent)

    def may_call_as(self, name: str) -> bool:
        """Whether it may make calls under this name: its own, or that of an agent it may speak as."""
        return self.may_speak_as(name) or (self.name == name and self.may(SUBMIT))


NOBODY: Final = Identity()  # a request that shows no token: it may ask whether the gate lives
NEIGHBOUR: Final = Identity(is_trusted=True)  # anybody on this machine, while the gate asks for no tokens
