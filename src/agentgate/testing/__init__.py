"""Shipped for tests: virtual time, a simulated platform, and a gate for your own agents."""

from agentgate.testing.loop import NothingCanWake, VirtualLoop, run_virtual

__all__ = ["NothingCanWake", "VirtualLoop", "run_virtual"]
