"""AgentGate: a gate between agents. Everything an agent or a client needs is imported from here."""

from agentgate.errors import CallFailed, LinkDown, OutcomeUnknown, Rejected, TryLater
from agentgate.sdk.agent import Agent
from agentgate.sdk.context import Context
from agentgate.sdk.gate import Gate
from agentgate.sdk.sync_context import SyncContext
from agentgate.sdk.target import skill

__all__ = [
    "Agent",
    "CallFailed",
    "Context",
    "Gate",
    "LinkDown",
    "OutcomeUnknown",
    "Rejected",
    "SyncContext",
    "TryLater",
    "skill",
]
