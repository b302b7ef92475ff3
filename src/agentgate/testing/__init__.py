"""Shipped for tests: virtual time, a simulated platform, and a gate for your own agents."""

from agentgate.testing.local_gate import AgentFault, LocalGate, local_gate
from agentgate.testing.loop import NothingCanWake, VirtualLoop, run_virtual

__all__ = ["AgentFault", "LocalGate", "NothingCanWake", "VirtualLoop", "local_gate", "run_virtual"]
