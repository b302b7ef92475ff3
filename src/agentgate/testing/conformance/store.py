"""What every `Store` has to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentgate.ports.store import Store
from agentgate.testing.conformance.changes import ChangeTests
from agentgate.testing.conformance.claims import ClaimTests
from agentgate.testing.conformance.failures import FailureTests
from agentgate.testing.conformance.lifetimes import LifetimeTests
from agentgate.testing.conformance.reading import ReadingTests


class StoreSuite(LifetimeTests, ClaimTests, ChangeTests, ReadingTests, FailureTests):
    """Subclass it and override `make_store`."""

    @pytest.fixture
    def make_store(self) -> Callable[[], Store]:
        """Makes a store, not open yet; every call within one test makes it on the same place."""
        raise NotImplementedError
