"""The ports in memory: the reference that every other adapter is compared with, and the store of simulations."""

from agentgate.adapters.memory.span_store import MemorySpanStore
from agentgate.adapters.memory.store import MemoryStore

__all__ = ["MemorySpanStore", "MemoryStore"]
