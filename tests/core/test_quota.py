"""Quotas by example, with literal times."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from agentgate.core.policy import Admit, Refuse
from agentgate.core.quota import (
    SLICES_MAX,
    WINDOWS_MAX,
    QuotaLimit,
    QuotaOptions,
    Quotas,
    QuotaTicket,
    Standing,
    TaskCost,
)
from agentgate.model import AgentQuota, Call, Outcome, failure

PER_USER = QuotaLimit(user="*", units=100, per_s=60)
DONE, UNSENT, SENT = Outcome(value=1), failure("no_route"), failure("handler_error", sent=True)


def quotas(*limits: QuotaLimit, **more: Any) -> Quotas:
    return Quotas(QuotaOptions(limits=limits), **more)


def is_used(policy: Quotas) -> bool:
    return policy.in_use


def call(user: str = "carol", cost: float = 1.0, **more: Any) -> Call:
    return Call(
        **{"id": "c", "target": "bank", "agent": "bank", "task_type": "pay", "user": user, "cost": cost, **more}
    )


def admitted(policy: Quotas, made: Call, now: float) -> QuotaTicket:
    decision = policy.admit(made, now)
    assert isinstance(decision, Admit), decision
    assert isinstance(decision.ticket, QuotaTicket)
    return decision.ticket


def refused(policy: Quotas, made: Call, now: float) -> tuple[int | None, str]:
    asked = policy.ask(made, now)
    decision = policy.admit(made, now)
    assert isinstance(decision, Refuse)
    assert decision.error == asked
    assert (decision.error.code, decision.error.fault, decision.error.sent) == ("quota_exhausted", "refused", False)
    return decision.error.retry_after_ms, decision.error.detail


def test_without_a_limit_nothing_is_counted() -> None:
    """F106: no limit is no limit, and is not shown as a number."""
    policy = quotas()
    assert not is_used(policy)
    for _ in range(1000):
        policy.settle(admitted(policy, call(), 0.0), DONE, 0.0)
    assert (len(policy), policy.standing(call(), 0.0), policy.ask(call(), 0.0)) == (0, [], None)


def test_a_user_gets_so_many_units_in_a_window() -> None:
    """B12: the refusal names the user, the limit and what is used, and says when it would fit."""
    policy = quotas(PER_USER)
    admitted(policy, call(cost=60), 0.0)
    admitted(policy, call(cost=40), 30.0)
    wait_ms, detail = refused(policy, call(cost=30), 31.0)
    assert wait_ms == 29_000
    assert detail == "carol: 100 of 100 units a 60 s are used and this call costs 30, by the limit 'user=*'"
    assert refused(policy, call(cost=61), 31.0)[0] == 59_000
    admitted(policy, call(cost=60), 60.0)


def test_what_never_fits_is_told_never_to_come_back() -> None:
    """A call that costs more than the limit ever allows has no time after which it would fit."""
    policy = quotas(PER_USER, QuotaLimit(task_type="nuke", concurrent=0))
    for made in (call(cost=101), call(task_type="nuke")):
        decision = policy.admit(made, 0.0)
        assert isinstance(decision, Refuse)
        assert (decision.error.retry, decision.error.retry_after_ms) == ("never", None)


def test_reserved_first_charged_if_sent() -> None:
    """F107, F108: of ten calls at once only those pass that fit; one that was not sent gives everything back."""
    policy = quotas(PER_USER)
    first = admitted(policy, call(cost=58), 0.0)
    for _ in range(4):
        refused(policy, call(cost=58), 0.0)
    policy.settle(first, UNSENT, 1.0)
    second = admitted(policy, call(cost=58), 1.0)
    policy.settle(second, SENT, 2.0)
    refused(policy, call(cost=58), 2.0)
    third = admitted(policy, call(cost=42), 2.0)
    policy.abandon(third, 2.0)
    policy.settle(admitted(policy, call(cost=42), 2.0), DONE, 2.0)
    refused(policy, call(cost=1), 2.0)


def test_what_comes_back_after_its_window_comes_back_once() -> None:
    """A call that outlives the window it was counted in has left it already."""
    policy = quotas(PER_USER)
    long = admitted(policy, call(cost=100), 0.0)
    fresh = admitted(policy, call(cost=100), 60.0)
    policy.settle(long, UNSENT, 64.0)
    refused(policy, call(), 64.0)
    policy.settle(fresh, UNSENT, 64.0)
    admitted(policy, call(cost=100), 64.0)


def test_a_limit_speaks_of_those_it_names() -> None:
    """B12: a name is this one, `*` is each by itself, nothing is all together; tenants are apart."""
    policy = quotas(
        QuotaLimit(user="mallory", units=1, per_s=60),
        QuotaLimit(user="*", task_type="render", units=2, per_s=60),
        QuotaLimit(agent="bank", units=5, per_s=60),
    )
    admitted(policy, call("mallory"), 0.0)
    assert "user=mallory" in refused(policy, call("mallory"), 0.0)[1]
    for user in ("carol", "dave"):
        admitted(policy, call(user, task_type="render"), 0.0)
    admitted(policy, call("carol", task_type="render"), 0.0)
    assert "user=* task_type=render" in refused(policy, call("carol", task_type="render"), 0.0)[1]
    admitted(policy, call("dave", task_type="render"), 0.0)
    assert "agent=bank" in refused(policy, call("erin"), 0.0)[1]
    admitted(policy, call("erin", agent="mint"), 0.0)
    admitted(policy, call("mallory", tenant="other"), 0.0)


def test_all_limits_or_none() -> None:
    """B12: a refusal by one limit takes nothing from another, and names the one that has room last."""
    policy = quotas(
        QuotaLimit(user="*", units=2, per_s=60, name="minute"), QuotaLimit(user="*", units=3, per_s=3600, name="hour")
    )
    admitted(policy, call(cost=2), 0.0)
    assert refused(policy, call(cost=2), 0.0)[1].endswith("by the limit 'hour'")
    assert [standing.remaining for standing in policy.standing(call(), 0.0)] == [0, 1]
    admitted(policy, call(), 60.0)
    assert [standing.remaining for standing in policy.standing(call(), 60.0)] == [1, 0]


def test_so_many_at_once() -> None:
    """B12: calls under way are counted until they end, whatever they came to."""
    policy = quotas(QuotaLimit(task_type="*", concurrent=2, name="lanes"))
    first, second = admitted(policy, call(), 0.0), admitted(policy, call(), 0.0)
    assert refused(policy, call(), 0.0) == (
        1000,
        "all callers together: 2 calls are under way, 2 may be, by the limit 'lanes'",
    )
    admitted(policy, call(task_type="look"), 0.0)
    policy.settle(first, DONE, 1.0)
    admitted(policy, call(), 1.0)
    refused(policy, call(), 1.0)
    policy.abandon(second, 1.0)
    admitted(policy, call(), 1.0)


def test_light_work_is_not_starved_by_heavy_work() -> None:
    """B12: a user who floods the gate with heavy calls still gets light ones through, each kind by its own measure."""
    policy = Quotas(
        QuotaOptions(
            limits=(QuotaLimit(user="*", task_type="*", units=100, per_s=60),),
            costs=(TaskCost(task_type="render", units=20),),
        )
    )
    heavy = policy.cost("render", declared=1.0)
    passed = sum(isinstance(policy.admit(call(task_type="render", cost=heavy), 0.0), Admit) for _ in range(1000))
    light = sum(
        isinstance(policy.admit(call(task_type="look", cost=policy.cost("look", 1.0)), 0.0), Admit) for _ in range(90)
    )
    assert (heavy, passed, light) == (20.0, 5, 90)


def test_what_operators_set_at_run_time_counts_at_once() -> None:
    """A6: the quota of an agent can be set, changed and taken away while calls go on."""
    agents: dict[tuple[str, str], AgentQuota] = {}
    policy = quotas(agents=agents)
    assert not is_used(policy)
    agents["default", "bank"] = AgentQuota(units=2, per_s=60)
    assert is_used(policy)
    admitted(policy, call(cost=2), 0.0)
    assert "agent=bank" in refused(policy, call("dave"), 0.0)[1]
    admitted(policy, call(agent="mint"), 0.0)
    admitted(policy, call(tenant="other"), 0.0)
    agents["default", "bank"] = AgentQuota(units=3, per_s=60)
    admitted(policy, call(), 0.0)
    refused(policy, call(), 0.0)
    del agents["default", "bank"]
    admitted(policy, call(), 0.0)


def test_what_was_used_counts_on_when_the_period_of_a_quota_is_changed() -> None:
    """A6, B12: within the new period, as far as it is known; however often it is changed, in bounds."""
    agents = {("default", "bank"): AgentQuota(units=3, per_s=60)}
    policy = quotas(agents=agents)
    for at in (0.0, 10.0, 50.0):
        admitted(policy, call(), at)
    agents["default", "bank"] = AgentQuota(units=3, per_s=20)  # two are older
    assert policy.standing(call(), 55.0)[0].remaining == 2
    agents["default", "bank"] = AgentQuota(units=3, per_s=600)  # they are forgotten, the third is not
    assert policy.standing(call(), 69.0)[0].remaining == 2
    admitted(policy, call(cost=2), 69.0)
    assert refused(policy, call(), 69.0)[0] == 581_000
    for number in range(10 * SLICES_MAX):
        agents["default", "bank"] = AgentQuota(units=1e6, per_s=600.0 + number % 7)
        admitted(policy, call(), 70.0 + number / 100)
    assert policy.standing(call(), 80.0)[0].remaining == 1e6 - 10 * SLICES_MAX - 3
    assert policy.standing(call(), 700.0)[0].remaining == 1e6


def test_observing_counts_up_to_the_limit() -> None:
    """I2: every call passes, is noted where it would have been refused, and leaves no debt."""
    policy = quotas(QuotaLimit(user="*", units=2, per_s=60, concurrent=2))
    tickets = [policy.shadow(call(), 0.0) for _ in range(4)]
    assert [ticket.would for ticket in tickets] == ["", "", "would_quota_exhausted", "would_quota_exhausted"]
    for ticket in tickets:
        policy.settle(ticket, DONE, 1.0)
    assert policy.standing(call(), 1.0)[0].remaining == 0
    admitted(policy, call(cost=2), 60.0)


def test_a_standing_is_what_headers_need() -> None:
    """The name, the quota, what is left, and when the next units come back."""
    policy = quotas(QuotaLimit(user="*", units=10, per_s=60, name="fair"), QuotaLimit(user="*", concurrent=5))
    assert policy.standing(call(), 0.0) == [Standing("fair", 10, 60, 10, 0.0)]
    admitted(policy, call(cost=4), 0.0)
    assert policy.standing(call(), 10.0) == [Standing("fair", 10, 60, 6, 50.0)]
    assert policy.standing(call("dave"), 10.0) == [Standing("fair", 10, 60, 10, 0.0)]
    assert QuotaLimit(units=1, per_s=1).title == "everybody"


def test_the_nearest_limit_is_the_one_that_a_call_comes_up_to_first() -> None:
    """B12: by the share that is left after one more call of this cost; one that it does not fit comes first."""
    wide = QuotaLimit(user="*", units=100, per_s=60, name="wide")
    policy = quotas(wide, QuotaLimit(task_type="pay", units=10, per_s=60, name="tight"), QuotaLimit(concurrent=5))

    def nearest(**more: Any) -> str:
        found = policy.nearest(call(**more), 1.0)
        return found.name if found is not None else ""

    assert nearest(task_type="pay") == "tight"
    assert nearest(task_type="look") == "wide"
    admitted(policy, call(cost=95, task_type="look"), 0.0)
    assert (nearest(task_type="pay", cost=1), nearest(task_type="pay", cost=6)) == ("wide", "wide")
    assert nearest(task_type="pay", user="dave") == "tight"
    assert quotas(wide, QuotaLimit(units=0, per_s=1, name="shut")).nearest(call(), 1.0) == ("shut", 0, 1, 0, 0.0)
    assert quotas(QuotaLimit(concurrent=5)).nearest(call(), 1.0) is None


def test_users_are_forgotten() -> None:
    """F110: the map is bounded and swept, what is under way stays; being asked creates nothing."""
    policy = quotas(PER_USER)
    policy.ask(call("nobody"), 0.0)
    assert len(policy) == 0
    for number in range(WINDOWS_MAX + 10):
        policy.settle(admitted(policy, call(f"user-{number}"), 0.0), DONE, 0.0)
    assert len(policy) == WINDOWS_MAX
    running = admitted(policy, call("carol"), 0.0)
    assert (policy.tick(0.0), policy.next_deadline()) == ([], None)
    policy.tick(100_000.0)
    policy.tick(200_000.0)
    assert len(policy) == 1
    policy.settle(running, DONE, 200_000.0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"units": 1}, "belong together"),
        ({"per_s": 1}, "belong together"),
        ({"user": "*"}, "needs units and per_seconds, or concurrent"),
        ({"units": -1, "per_s": 1}, "units must be from 0"),
        ({"units": nan, "per_s": 1}, "units must be from 0"),
        ({"units": inf, "per_s": 1}, "units must be from 0"),
        ({"units": 1, "per_s": 0}, "per_seconds must be from 1"),
        ({"concurrent": -1}, "concurrent must be at least 0"),
        ({"concurrent": 1, "name": 'a"b'}, "name must be printable ASCII"),
    ],
)
def test_limits_out_of_range_are_refused(fields: dict[str, Any], said: str) -> None:
    """F106: a limit that means nothing is refused when it is read."""
    with pytest.raises(ValueError, match=said):
        QuotaLimit(**fields)


def test_costs_and_numbers_of_limits_are_bounded() -> None:
    """F106: negative costs would fill a quota up again; every limit is asked about every call."""
    with pytest.raises(ValueError, match="units must be from 0"):
        TaskCost(task_type="pay", units=-1)
    with pytest.raises(ValueError, match="at most 100 limits"):
        QuotaOptions(limits=(PER_USER,) * 101)
