"""The ports on SQLite files: no server, one gateway process."""

from agentgate.adapters.sqlite.span_reading import read_spans
from agentgate.adapters.sqlite.span_store import SpanFilesOptions, SqliteSpanStore
from agentgate.adapters.sqlite.store import SqliteStore

__all__ = ["SpanFilesOptions", "SqliteSpanStore", "SqliteStore", "read_spans"]
