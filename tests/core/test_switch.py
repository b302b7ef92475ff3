"""The switch of an agent: who is refused, who is not, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.switch import caller_refusal, target_refusal
from agentgate.model import AgentSettings, Call, Card, Route, SwitchedOff

ON = Route(card=Card(agent="stock"))
OFF = Route(
    card=Card(agent="stock"),
    settings=AgentSettings(off=SwitchedOff(by="ada", at=1_800_000_000.0, reason="double bookings")),
)


def call_of(**fields: Any) -> Call:
    return Call(id="c", target="bank", task_type="pay", caller="stock", **fields)


def test_a_call_to_an_agent_that_is_off_is_told_who_when_and_why() -> None:
    """A6: the refusal names who switched it off, when and why, says that nothing was sent, and what to do."""
    error = target_refusal(OFF)
    assert error is not None
    assert (error.code, error.sent, error.retry, error.retry_after_ms) == ("no_route", False, "after", 30_000)
    assert error.detail == "stock was switched off by ada on 2027-01-15 08:00:00 UTC: double bookings"
    assert "until stock is switched on again" in error.advice


@pytest.mark.parametrize("route", [None, ON])
def test_whoever_is_on_or_not_known_is_not_refused_for_it(route: Route | None) -> None:
    """A6: only the switch refuses here; who is not there at all is another matter."""
    assert target_refusal(route) is None
    assert caller_refusal(route, call_of()) is None


def test_an_agent_that_is_off_begins_nothing_but_may_finish() -> None:
    """A6: its root calls are refused; calls of its running units pass, and those that may be of one."""
    error = caller_refusal(OFF, call_of())
    assert error is not None
    assert (error.code, error.retry, error.sent) == ("forbidden", "never", False)
    assert caller_refusal(OFF, call_of(parent_unit="u1")) is None
    assert caller_refusal(OFF, call_of(linked=False)) is None
