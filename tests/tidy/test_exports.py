"""The public names are a promise; adding or losing one is a decision."""

from __future__ import annotations

import pytest

import agentgate
from tests.tidy.checkout import SRC

NAMES = [
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


@pytest.mark.skipif(not (SRC / "sdk").is_dir(), reason="the SDK is not there yet")
def test_public_names_are_the_documented_ones() -> None:
    """`agentgate.__all__` is exactly what EXPERIENCE documents, in order, and every name is there."""
    assert list(getattr(agentgate, "__all__", [])) == NAMES
    assert [name for name in NAMES if not hasattr(agentgate, name)] == []
