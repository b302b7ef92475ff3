"""Whose call is it? Attribution, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.traceparent import format_traceparent
from agentgate.core.unit_token import UnitClaim, UnitTokens
from agentgate.core.units import Attribution, Chain, OpenUnit, OpenUnits
from agentgate.model import Call, plain, qualified

TOKENS = UnitTokens(b"a secret of sixteen bytes")
TRACE = "a" * 32
OTHER_TRACE = "b" * 32


def span_of(number: int) -> str:
    return f"{number:016x}"


def unit_of(
    name: str, number: int, *, agent: str = "order", instance: str = "i1", epoch: int = 1, **fields: Any
) -> OpenUnit:
    call = Call(id=name, target=agent, agent=agent, task_type="confirm", trace_id=TRACE, depth=number, **fields)
    return OpenUnit(name, call, Chain(), instance=instance, span_id=span_of(number), epoch=epoch)


def token_of(unit: OpenUnit, epoch: int = 1) -> str:
    return TOKENS.issue(UnitClaim(unit.unit, "", TRACE, unit.call.depth, epoch))


def attributed(
    units: OpenUnits, *, token: str = "", traceparent: str = "", caller: str = "order", instance: str = "i1"
) -> Attribution:
    return units.attribute(TOKENS, token, traceparent, caller, instance)


def units_of(*opened: OpenUnit) -> OpenUnits:
    units = OpenUnits()
    for unit in opened:
        units.open(unit)
    return units


ONE, TWO = unit_of("one", 1), unit_of("two", 2)
BLUE = unit_of("three", 3, agent=qualified("blue", "order"), instance=qualified("blue", "i1"), tenant="blue")


def child_of(unit: OpenUnit) -> Attribution:
    return Attribution(unit.unit, unit.span_id, TRACE, "client", unit.call.depth + 1)


def test_a_token_comes_first() -> None:
    """A7: the unit token decides, whatever trace the call was sent with."""
    units = units_of(ONE, TWO)
    sent = format_traceparent(TRACE, span_of(2))
    assert attributed(units, token=token_of(ONE), traceparent=sent, instance="elsewhere") == child_of(ONE)


@pytest.mark.parametrize(
    ("token", "code"),
    [
        (token_of(TWO), "lease_lost"),  # closed or never known
        (token_of(ONE, epoch=2), "lease_lost"),  # granted anew
        ("garbage", "lease_lost"),
        (UnitTokens(b"the secret of another gate").issue(UnitClaim("one", "", TRACE, 1, 1)), "lease_lost"),
    ],
)
def test_a_dead_token_is_refused(token: str, code: str) -> None:
    """FAILURES F03: a handler that goes on after its unit has ended can do nothing in its name."""
    refused = attributed(units_of(ONE), token=token).refused
    assert refused is not None
    assert refused.code == code


def test_a_token_belongs_to_its_agent() -> None:
    """I6: an agent speaks only as itself, also with a token it got hold of."""
    refused = attributed(units_of(ONE), token=token_of(ONE), caller="stock").refused
    assert refused is not None
    assert refused.code == "forbidden"


def test_a_traceparent_of_an_open_unit_comes_next() -> None:
    """A7: what a plain HTTP library sends along is enough, for the caller's own units."""
    units = units_of(ONE, TWO)
    sent = format_traceparent(TRACE, span_of(2))
    assert attributed(units, traceparent=sent, instance="") == child_of(TWO)
    stranger = attributed(units, traceparent=sent, caller="stock", instance="")
    assert stranger == Attribution(parent_span_id=span_of(2), root=TRACE)


def test_the_only_open_unit_comes_third() -> None:
    """A7: with one unit open in the process, the call was made in it, whatever its trace says."""
    units = units_of(ONE, unit_of("there", 3, instance="i2"))
    assert attributed(units) == child_of(ONE)
    assert attributed(units, traceparent=format_traceparent(OTHER_TRACE, span_of(9))) == child_of(ONE)


def test_else_it_is_a_root() -> None:
    """A call of a process without open units begins a chain, or continues the trace it was sent with."""
    units = units_of(ONE)
    assert attributed(units, instance="") == Attribution()
    assert attributed(units, instance="i9") == Attribution()
    sent = format_traceparent(OTHER_TRACE, span_of(9))
    assert attributed(units, traceparent=sent, instance="") == Attribution(parent_span_id=span_of(9), root=OTHER_TRACE)
    assert attributed(units, traceparent="garbage", instance="") == Attribution()


def test_one_of_several_units_is_marked() -> None:
    """A7: nobody can tell which of them made it: a root that is not linked."""
    assert attributed(units_of(ONE, TWO)) == Attribution(linked=False)
    sent = format_traceparent(OTHER_TRACE, span_of(9))
    assert attributed(units_of(ONE, TWO), traceparent=sent) == Attribution(
        parent_span_id=span_of(9), root=OTHER_TRACE, linked=False
    )


def test_closing_forgets_a_unit_everywhere() -> None:
    """Once closed, neither token nor trace nor process leads to it; closing twice changes nothing."""
    units = units_of(ONE, TWO)
    assert units.of_instance("i1") == ["one", "two"]
    assert units.close("two") is TWO
    assert units.close("two") is None
    assert (len(units), units.of_instance("i1"), units.get("two")) == (1, ["one"], None)
    assert attributed(units, traceparent=format_traceparent(TRACE, span_of(2)), instance="i9") == Attribution(
        parent_span_id=span_of(2), root=TRACE
    )
    units.close("one")
    assert (len(units), units.of_instance("i1")) == (0, [])
    assert attributed(units) == Attribution()


def test_two_attempts_may_share_a_span() -> None:
    """The later one is found by the span, and the earlier one's end does not take that away."""
    early, late = unit_of("early", 5, instance=""), unit_of("late", 5, instance="")
    units = units_of(early, late)
    units.close("early")
    assert attributed(units, traceparent=format_traceparent(TRACE, span_of(5)), instance="") == child_of(late)


def test_a_unit_that_is_opened_again_keeps_its_counts() -> None:
    """A reconnect tells of a unit anew; what it has done already stays counted."""
    first, again = unit_of("one", 1), unit_of("one", 1, instance="i2", epoch=2)
    units = units_of(first)
    first.calls = 7
    units.open(again)
    assert (again.calls, again.chain, len(units)) == (7, first.chain, 1)
    assert (units.of_instance("i1"), units.of_instance("i2")) == ([], ["one"])


def test_ancestors_are_named_nearest_first() -> None:
    """The walk ends where a unit is not known any more."""
    top = unit_of("top", 0, parent_unit="gone")
    middle = unit_of("middle", 1, parent_unit="top")
    bottom = unit_of("bottom", 2, parent_unit="middle")
    units = units_of(top, middle, bottom)
    assert [unit.unit for unit in units.ancestors("bottom")] == ["bottom", "middle", "top"]
    assert list(units.ancestors("")) == []


def test_units_of_another_tenant_are_nobodys() -> None:
    """I6: by token, by trace or by process, an agent of the same name in another tenant is another agent."""
    units = units_of(BLUE)
    stolen = attributed(units, token=token_of(BLUE)).refused
    assert stolen is not None
    assert (stolen.code, stolen.detail) == ("lease_lost", "unit three is closed")
    assert attributed(units, traceparent=format_traceparent(TRACE, span_of(3))).parent_unit == ""
    assert attributed(units).parent_unit == ""
    own = qualified("blue", "order")
    assert attributed(units, caller=own, instance=BLUE.instance) == child_of(BLUE)
    other = attributed(units, token=token_of(BLUE), caller=qualified("blue", "till")).refused
    assert other is not None
    assert (other.code, other.detail) == ("forbidden", f"unit three runs at {plain(own)}, not at till")
