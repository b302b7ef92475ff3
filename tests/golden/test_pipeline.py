"""The order of the path is a decision; it changes on purpose only."""

from __future__ import annotations

from collections.abc import Callable

from agentgate.gateway.pipeline import describe


def test_the_path_of_a_call_has_its_order(golden: Callable[[str, str], None]) -> None:
    """B6, C2: a repeat is answered before anything is charged; a breaker sees attempts; the claim comes last."""
    golden("pipeline.txt", describe({}))


def test_a_mechanism_that_is_off_is_said_to_be_off(golden: Callable[[str, str], None]) -> None:
    """I2: what is switched is visible in the description."""
    golden("pipeline_observe.txt", describe({"circuit_breaker": "observe", "rate_limit": "off"}))
