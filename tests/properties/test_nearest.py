"""Which name is suggested for one that nobody has."""

from __future__ import annotations

import pytest

from agentgate.gateway.stages.preflight import nearest


@pytest.mark.parametrize(
    ("asked", "suggestion"),
    [
        ("stok_agent", ", did you mean 'stock_agent'?"),
        ("stock_agents", ", did you mean 'stock_agent'?"),
        ("billing_agent", ""),
        ("pay_agent", ""),
    ],
)
def test_a_slip_of_the_pen_is_mended_and_another_agent_is_not_offered(asked: str, suggestion: str) -> None:
    """A1: whoever acts on the sentence must not send its work to an agent whose name merely ends alike."""
    assert nearest(asked, ["order_agent", "stock_agent"]) == suggestion
