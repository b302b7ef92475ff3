"""The chain guard: depth, fan-out, calls, loops, and the budget of unlinked calls."""

from __future__ import annotations

from typing import Any

import pytest

from agentgate.core.chain import ChainGuard, ChainOptions, ChainTicket
from agentgate.core.policy import Admit, Refuse, Ticket
from agentgate.core.traceparent import format_traceparent
from agentgate.core.unit_token import UnitClaim, UnitTokens
from agentgate.model import Call, Outcome, Problem, qualified

OK = Outcome(value=1)


def call_of(name: str = "c", **fields: Any) -> Call:
    return Call(**{"id": name, "target": "stock", "task_type": "look", "caller": "order", "effect": "read", **fields})


def guard_of(**options: int) -> ChainGuard:
    return ChainGuard(ChainOptions(**options))


def admitted(guard: ChainGuard, call: Call, now: float = 0.0) -> ChainTicket:
    assert guard.ask(call, now) is None
    decision = guard.admit(call, now)
    assert isinstance(decision, Admit)
    assert isinstance(decision.ticket, ChainTicket)
    return decision.ticket


def refused(guard: ChainGuard, call: Call, now: float = 0.0) -> Problem:
    decision = guard.admit(call, now)
    assert isinstance(decision, Refuse)
    assert guard.ask(call, now) == decision.error
    return decision.error


def run_in(guard: ChainGuard, call: Call) -> str:
    """Admit the call and let a unit run it; the unit has the call's name."""
    admitted(guard, call)
    guard.open_unit(f"u-{call.id}", call)
    return f"u-{call.id}"


def test_depth_stops_after_ten() -> None:
    """A7: a chain is at most ten hops deep; the eleventh is told to stop delegating."""
    guard = guard_of()
    unit = ""
    for depth in range(11):
        unit = run_in(guard, call_of(f"{depth}", depth=depth, parent_unit=unit, business_key=f"{depth}"))
    error = refused(guard, call_of("deep", depth=11, parent_unit=unit))
    assert (error.code, error.retry, error.detail) == ("chain_limit", "never", "depth 11 of at most 10")


def test_fan_out_stops_after_fifty() -> None:
    """A7: one unit makes at most fifty calls over its life, however fast they end; another unit has its own fifty."""
    guard = guard_of()
    parent, sibling = run_in(guard, call_of("root")), run_in(guard, call_of("sibling"))
    for number in range(50):
        guard.settle(admitted(guard, call_of(f"{number}", parent_unit=parent, business_key=f"{number}")), OK, 0.0)
    error = refused(guard, call_of("wide", parent_unit=parent))
    assert (error.code, error.detail) == ("chain_limit", "unit u-root has made 50 calls of at most 50")
    admitted(guard, call_of("elsewhere", parent_unit=sibling, business_key="e"))


def test_a_chain_stops_after_two_hundred_calls() -> None:
    """A7: one root leads to at most 200 calls, itself included, however they are spread."""
    guard = guard_of(fan_out_max=1000)
    units = [run_in(guard, call_of("root"))]
    for number in range(199):
        parent = units[number // 20]
        units.append(run_in(guard, call_of(f"{number}", parent_unit=parent, business_key=f"{number}")))
    error = refused(guard, call_of("long", parent_unit=units[-1]))
    assert (error.code, error.detail) == ("chain_limit", "the chain has made 200 calls of at most 200")
    admitted(guard, call_of("another root"))


def test_a_trace_is_not_a_chain() -> None:
    """A client that makes many root calls under one trace begins many chains, and is not cut off."""
    guard = guard_of()
    for number in range(500):
        admitted(guard, call_of(f"{number}", trace_id="a" * 32))


def test_a_chain_outlives_its_root_call() -> None:
    """Work that goes on after its caller left still counts where it began."""
    guard = guard_of(calls_max=2)
    root = admitted(guard, call_of("root"))
    guard.open_unit("u-root", call_of("root"))
    guard.settle(root, OK, 0.0)
    unit = run_in(guard, call_of("child", parent_unit="u-root", business_key="k"))
    guard.close_unit("u-root")
    assert refused(guard, call_of("grandchild", parent_unit=unit)).code == "chain_limit"


def test_a_rejoined_unit_counts_in_its_chain() -> None:
    """After a restart the calls themselves are unknown; units still find the chain of the unit above."""
    guard = guard_of(calls_max=1)
    guard.open_unit("top", call_of("before the restart"))
    guard.open_unit("below", call_of("before too", parent_unit="top"))
    admitted(guard, call_of("new", parent_unit="below", business_key="k"))
    assert refused(guard, call_of("newer", parent_unit="top")).code == "chain_limit"


@pytest.mark.parametrize(
    ("above", "call", "is_loop"),
    [
        ({}, {}, True),
        ({"business_key": "o1"}, {"business_key": "o1"}, True),
        ({"business_key": "o1"}, {"business_key": "o2"}, False),
        ({"business_key": "o1", "payload": 1}, {"business_key": "o1", "payload": 2}, True),
        ({"payload": {"a": 1, "b": 2}}, {"payload": {"b": 2, "a": 1}}, True),
        ({"payload": {"a": 1}}, {"payload": {"a": 1.0}}, False),
        ({"task_type": "look"}, {"task_type": "count"}, False),
        ({"action": "run"}, {"action": "again"}, False),
        ({"target": "skill:look"}, {"target": "skill:look"}, True),
        ({"target": "skill:look"}, {"target": "stock"}, True),
        ({"target": "skill:look", "agent": "shelf"}, {"target": "stock"}, False),
        ({"target": "shelf", "agent": "shelf"}, {"target": "stock"}, False),
    ],
)
def test_the_same_work_further_up_is_a_loop(above: dict[str, Any], call: dict[str, Any], is_loop: bool) -> None:
    """FAILURES kind 8: same target, task type, business key and action as a waiting ancestor; two questions are two."""
    guard = guard_of()
    top = run_in(guard, call_of("top", **{"agent": "stock", **above}))
    middle = run_in(guard, call_of("middle", target="order", agent="order", parent_unit=top, business_key="other"))
    again = call_of("again", parent_unit=middle, **call)
    assert (guard.ask(again, 0.0) is not None) == is_loop


def test_a_loop_names_its_chain() -> None:
    """The answer shows how the work came back to where it is waited for."""
    guard = guard_of()
    top = run_in(guard, call_of("1", target="skill:confirm", agent="order", task_type="confirm", business_key="o1"))
    middle = run_in(guard, call_of("2", agent="stock", task_type="reserve", business_key="o1", parent_unit=top))
    error = refused(guard, call_of("3", target="order", task_type="confirm", business_key="o1", parent_unit=middle))
    assert (error.code, error.retry) == ("loop", "never")
    assert error.detail == "order.confirm(o1) > stock.reserve(o1) > order.confirm(o1)"


def test_polling_is_no_loop() -> None:
    """FAILURES F64: the same read again and again is no loop as long as nobody above waits for it."""
    guard = guard_of()
    unit = run_in(guard, call_of("root", task_type="confirm", agent="stock"))
    for number in range(50):
        guard.settle(admitted(guard, call_of(f"{number}", parent_unit=unit)), OK, 0.0)


def test_work_that_has_ended_is_no_loop() -> None:
    """Only what is still open waits."""
    guard = guard_of()
    top = run_in(guard, call_of("top", agent="stock"))
    middle = run_in(guard, call_of("middle", target="order", agent="order", task_type="confirm", parent_unit=top))
    again = call_of("again", parent_unit=middle)
    assert refused(guard, again).code == "loop"
    guard.close_unit(top)
    guard.close_unit(top)
    admitted(guard, again)


def test_unlinked_calls_share_a_budget() -> None:
    """A7: calls that lost their chain are at most 200 a minute an agent; each minute is an exact one."""
    guard = guard_of()
    for number in range(200):
        admitted(guard, call_of(f"{number}", linked=False), now=number / 10)
    error = refused(guard, call_of(linked=False), now=30.0)
    assert (error.code, error.retry_after_ms) == ("chain_limit", 30_000)
    assert error.detail == "order has made 200 calls of at most 200 a minute outside of any known unit"
    admitted(guard, call_of(linked=True), now=30.0)
    admitted(guard, call_of(linked=False, caller="review"), now=30.0)
    assert refused(guard, call_of(linked=False), now=59.9).retry_after_ms == 100
    admitted(guard, call_of(linked=False), now=60.0)
    assert refused(guard, call_of(linked=False), now=60.0).retry_after_ms == 100


def test_a_budget_of_zero_means_none() -> None:
    """FAILURES F48: 0 is a value: no unlinked call is allowed, and observing counts none either."""
    guard = guard_of(unlinked_per_minute=0)
    assert refused(guard, call_of(linked=False)).retry_after_ms == 60_000
    assert guard.shadow(call_of(linked=False), 0.0).would == "would_chain_limit"


def test_what_was_not_made_is_not_charged() -> None:
    """FAILURES kind 10: a call that a later stage refused gives everything back, each limit for itself."""
    guard = guard_of(calls_max=2, fan_out_max=1, unlinked_per_minute=1)
    parent = run_in(guard, call_of("root"))
    for number in range(20):
        guard.abandon(admitted(guard, call_of(f"{number}", parent_unit=parent, business_key="k")), 0.0)
        guard.abandon(admitted(guard, call_of(f"{number}", linked=False)), 0.0)
    guard.settle(admitted(guard, call_of("last", parent_unit=parent, business_key="k")), OK, 0.0)
    assert refused(guard, call_of("more", parent_unit=parent, business_key="k")).code == "chain_limit"


def test_a_stamp_that_is_over_cannot_be_given_back() -> None:
    """An unlinked call given up after its minute, or after its budget was forgotten, changes nothing."""
    guard = guard_of(unlinked_per_minute=2)
    early = admitted(guard, call_of("early", linked=False), 0.0)
    admitted(guard, call_of("later", linked=False), 100.0)
    guard.abandon(early, 100.0)
    last = admitted(guard, call_of("last", linked=False), 100.0)
    assert refused(guard, call_of("more", linked=False), 100.0).code == "chain_limit"
    for turn in range(4):
        assert guard.tick(100.0 + 60.0 * turn) == []
    guard.abandon(last, 300.0)
    assert guard.next_deadline() is None


@pytest.mark.parametrize("end", ["settle", "abandon"])
@pytest.mark.parametrize("again", ["settle", "abandon"])
def test_a_ticket_ends_exactly_once(end: str, again: str) -> None:
    """A second settle or abandon of a ticket is a defect and raises (FAILURES kind 3)."""
    guard = guard_of()
    ticket = admitted(guard, call_of())

    def finish(how: str) -> None:
        if how == "settle":
            guard.settle(ticket, OK, 0.0)
        else:
            guard.abandon(ticket, 0.0)

    finish(end)
    with pytest.raises(AssertionError):
        finish(again)
    with pytest.raises(AssertionError):
        guard.settle(Ticket(call_of()), OK, 0.0)


def test_observing_counts_and_stops_nobody() -> None:
    """I2: in observe mode every call passes, is counted, and is marked with what would have been done."""
    guard = guard_of(depth_max=3, unlinked_per_minute=1)
    top = call_of("top", agent="stock")
    guard.shadow(top, 0.0)
    guard.open_unit("u", top)
    marks = [
        guard.shadow(call_of("1", parent_unit="u", business_key="k"), 0.0).would,
        guard.shadow(call_of("2", parent_unit="u"), 0.0).would,
        guard.shadow(call_of("3", depth=4), 0.0).would,
        guard.shadow(call_of("4", linked=False), 0.0).would,
        guard.shadow(call_of("5", linked=False), 0.0).would,
    ]
    assert marks == ["", "would_loop", "would_chain_limit", "", "would_chain_limit"]


def test_the_guard_knows_whose_call_it_is() -> None:
    """A7: token, traceparent and process lead to the unit that was opened with them."""
    guard = guard_of()
    tokens = UnitTokens(b"a secret of sixteen bytes")
    call = call_of("c", agent="order", trace_id="a" * 32, span_id="1" * 16)
    guard.open_unit("u", call, instance="i", span_id="2" * 16, epoch=4)
    guard.open_unit("v", call, instance="i", epoch=4)
    by_token = guard.attribute(tokens, tokens.issue(UnitClaim("u", "", "a" * 32, 0, 4)), "", "order", "i")
    by_span = guard.attribute(tokens, "", format_traceparent("a" * 32, "2" * 16), "order", "")
    by_own_span = guard.attribute(tokens, "", format_traceparent("a" * 32, "1" * 16), "order", "")
    assert (by_token.parent_unit, by_span.parent_unit, by_own_span.parent_unit) == ("u", "u", "v")
    assert (by_token.root, by_token.depth) == ("a" * 32, 1)


@pytest.mark.parametrize(
    "wrong",
    [{"depth_max": -1}, {"fan_out_max": None}, {"calls_max": 0}, {"unlinked_per_minute": -1}, {"callers_max": 0}],
)
def test_options_are_checked_when_they_are_made(wrong: dict[str, int]) -> None:
    """A blank or absurd setting is refused with its name (FAILURES F26)."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ChainOptions(**wrong)


def test_tenants_have_chains_and_budgets_of_their_own() -> None:
    """I6: the same call ids, callers and agents in two tenants are two chains, and two budgets."""
    guard = guard_of(calls_max=2, unlinked_per_minute=1)
    for tenant in ("default", "blue"):
        root = call_of("same", tenant=tenant, agent=qualified(tenant, "stock"))
        admitted(guard, root)
        guard.open_unit(f"u-{tenant}", root)
    for tenant in ("default", "blue"):
        child = call_of("child", tenant=tenant, parent_unit=f"u-{tenant}", target="till")
        assert admitted(guard, child).chain.calls == 2
        admitted(guard, call_of("free", tenant=tenant, linked=False))
        assert refused(guard, call_of("more", tenant=tenant, linked=False)).code == "chain_limit"


def test_a_loop_is_found_in_every_tenant() -> None:
    """A7, I6: the agent that a capability led to is recognised by the name its tenant calls it."""
    guard = guard_of()
    root = call_of("root", tenant="blue", target="skill:look", agent=qualified("blue", "stock"))
    unit = run_in(guard, root)
    error = refused(guard, call_of("again", tenant="blue", target="stock", parent_unit=unit))
    assert error.code == "loop"
