"""Suites that every adapter of a port has to pass, ours and anybody's.

Subclass a suite under pytest, override its fixture, and the tests are yours::

    class TestMyStore(StoreSuite):
        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "place")

What is new in a port goes into its suite first; a test of one adapter alone is for its own dialect.
"""

from agentgate.testing.conformance.spans import SpanStoreSuite
from agentgate.testing.conformance.store import StoreSuite

__all__ = ["SpanStoreSuite", "StoreSuite"]
