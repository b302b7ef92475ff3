"""The ports on SQLite files: no server, one gateway process."""

from agentgate.adapters.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
