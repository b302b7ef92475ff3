"""What the demo plans and how it judges, without processes: a wrong judge would make every run look good."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agentgate.cli.demo.clients import Ending
from agentgate.cli.demo.gauges import Counts
from agentgate.cli.demo.judge import Verdict, judge, kind_of, read_effects
from agentgate.cli.demo.plan import LULL_S, Plan, draw, make_plan, read_orders
from agentgate.cli.demo.result import MEANINGS, Result
from agentgate.cli.demo.run import find_example, first_circle
from agentgate.cli.demo.screen import summary
from agentgate.cli.demo.show import last_line

CSV = find_example() / "orders.csv"
DONE = Counter(reserved=1, confirmed=1, notified=1)
OPEN_S_MAX = 12.0  # a breaker's first rest with its spread


def receipt(**other: Any) -> dict[str, Any]:
    confirmed = {"order_id": "1", "status": "confirmed", "told": True, "shelf": "A1", "reason": "", "voucher": ""}
    return {**confirmed, **other}


def ending(**other: Any) -> Ending:
    return Ending(**{"order_id": "1", "seconds": 0.5, "receipt": receipt(), **other})


def plan_of(count: int, seed: int = 7, *, faults: bool = True) -> Plan:
    return make_plan(read_orders(CSV, count), seed=seed, faults=faults)


def test_orders_beyond_the_file_get_new_numbers() -> None:
    """A batch longer than the file repeats its orders, never their numbers."""
    orders = read_orders(CSV, 300)
    assert len({order["id"] for order in orders}) == 300
    assert orders[0] == {**orders[120], "id": orders[0]["id"]}


@given(count=st.integers(1, 400), seed=st.integers(0, 10_000), faults=st.booleans())
def test_plan_sends_every_order_once_and_some_again(count: int, seed: int, faults: bool) -> None:
    """Every order arrives once, in time order; at least one is sent again; the same seed gives the same plan."""
    plan = plan_of(count, seed, faults=faults)
    assert [arrival.order for arrival in plan.arrivals] == read_orders(CSV, count)
    times = [arrival.at_s for arrival in plan.arrivals]
    assert times == sorted(times)
    assert any(arrival.again_after_s for arrival in plan.arrivals)
    assert plan == plan_of(count, seed, faults=faults)
    assert (plan.outage_at_s is not None) == (plan.death_at_s is not None) == faults


@given(seed=st.integers(0, 10_000), begins=st.floats(0, 2), count=st.sampled_from([120, 240, 500]))
def test_outage_costs_few_orders(seed: int, begins: float, count: int) -> None:
    """Enough orders meet the outage to open the breaker, and an open breaker meets fewer than a fifth of all.

    It opens half a second to a second after the outage begins; up to two seconds are allowed for here.
    """
    plan = plan_of(count, seed)
    assert plan.outage_at_s is not None
    opens = plan.outage_at_s + begins
    times = [arrival.at_s for arrival in plan.arrivals]
    met = sum(plan.outage_at_s <= at_s <= opens + OPEN_S_MAX for at_s in times)
    assert 7 <= met < 0.2 * count


def test_run_of_120_takes_less_than_a_minute() -> None:
    """The last of 120 orders arrives within 45 s, with the lull in between."""
    last = plan_of(120).arrivals[-1].at_s
    assert LULL_S < last < 45
    assert plan_of(120, faults=False).arrivals[-1].at_s < 30


def test_draws_are_spread_and_repeatable() -> None:
    """A draw depends on the seed and on what it is for, and on nothing else."""
    draws = [draw(7, "thing", number) for number in range(500)]
    assert draws == [draw(7, "thing", number) for number in range(500)]
    assert 0.4 < sum(draws) / 500 < 0.6
    assert draw(8, "thing", 0) != draws[0]


DECLINED = ending(receipt=receipt(status="declined", shelf=""))
BACK_ORDERED = ending(receipt=receipt(status="back_ordered", shelf=""))


@pytest.mark.parametrize(
    ("case", "done", "kind"),
    [
        (ending(), DONE, "completed"),
        (DECLINED, Counter(notified=1), "completed"),
        (
            DECLINED,
            Counter(notified=1, reserved=1, released=1),
            "completed",
        ),
        (BACK_ORDERED, Counter(back_ordered=1, notified=1), "degraded"),
        (ending(receipt=receipt(told=False)), DONE, "degraded"),
        (ending(receipt=None, code="deadline_exceeded"), DONE, "failed"),
        (ending(receipt=None, code="outcome_unknown"), DONE, "unknown"),
        # The receipt claims what did not happen.
        (ending(), Counter(reserved=1, confirmed=1), "failed"),
        (ending(), Counter(reserved=1, notified=1), "failed"),
        (ending(), Counter(confirmed=1, notified=1), "failed"),
        (ending(receipt=receipt(voucher="SORRY")), DONE, "failed"),
        (BACK_ORDERED, Counter(notified=1), "failed"),
        # ... or hides what did.
        (DECLINED, DONE, "failed"),
    ],
)
def test_claims_are_held_against_the_effects(case: Ending, done: Counter[str], kind: str) -> None:
    """An order counts as completed only if what its receipt says is in the agents' file, and nothing against it."""
    found, finding = kind_of(case, done)
    assert found == kind
    assert bool(finding) == (kind in ("failed", "unknown") or (kind == "degraded" and not case.receipt["told"]))  # type: ignore[index]  # degraded has a receipt


def test_effects_done_twice_are_counted_from_the_file(tmp_path: Path) -> None:
    """One effect key with two rows is one effect done twice, whoever wrote them."""
    path = tmp_path / "effects.sqlite"
    assert read_effects(path) == {}
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE effects (order_id TEXT, what TEXT)")
        rows = [("1", "reserved"), ("1", "confirmed"), ("1", "notified"), ("1", "notified"), ("2", "notified")]
        file.executemany("INSERT INTO effects VALUES (?, ?)", rows)
    verdict = judge([ending()], 1, read_effects(path))
    assert (verdict.effects, verdict.effects_twice, verdict.holds) == (5, 1, False)
    assert verdict.findings == ["1: notified 2 times"]


def verdict_of(completed: int, degraded: int, failed: int, missing: int = 0) -> Verdict:
    endings = [
        *(ending(order_id=f"c{n}", repeats=[receipt()]) for n in range(completed)),
        *(ending(order_id=f"d{n}", receipt=receipt(told=False)) for n in range(degraded)),
        *(ending(order_id=f"f{n}", receipt=None, code="internal") for n in range(failed)),
    ]
    effects = {case.order_id: DONE for case in endings}
    return judge(endings, len(endings) + missing, effects)


@pytest.mark.parametrize(
    ("counts", "rate", "holds"),
    [((99, 1, 0), 1.0, True), ((80, 19, 1), 0.99, True), ((98, 0, 2), 0.98, False), ((98, 0, 0, 2), 0.98, False)],
)
def test_bar_is_ninety_nine_percent(counts: tuple[int, ...], rate: float, holds: bool) -> None:
    """Completion = (completed + degraded) / orders; an order that never ended counts as failed; the bar is 0.99."""
    verdict = verdict_of(*counts)
    assert verdict.completion_rate == pytest.approx(rate)
    assert verdict.holds == holds
    assert verdict.kinds.total() == verdict.orders


def test_repeats_must_be_told_the_same() -> None:
    """A repeat that hears something else than the first is counted."""
    same, other = ending(repeats=[receipt()]), ending(order_id="2", repeats=[receipt(shelf="B1"), "internal"])
    assert judge([same, other], 2, {"1": DONE, "2": DONE}).answers_differ == 2


def test_percentiles_are_nearest_ranks() -> None:
    """p50 and p95 are times that really occurred."""
    verdict = judge([ending(order_id=str(n), seconds=n / 10) for n in range(1, 21)], 20, {})
    assert (verdict.percentile_ms(0.5), verdict.percentile_ms(0.95)) == (1000.0, 1900.0)
    assert judge([], 0, {}).percentile_ms(0.5) == 0.0


@pytest.mark.parametrize(("found", "resolved", "holds"), [(0, 0, True), (5, 5, True), (5, 4, False)])
def test_a_circle_that_stood_until_a_time_out_misses_the_bar(found: int, resolved: int, holds: bool) -> None:
    """D3: whatever became of the orders, every circle that was found has to be resolved before a deadline."""
    counts = Counts(deadlocks_found=found, deadlocks_resolved=resolved)
    result = Result(verdict=verdict_of(10, 0, 0), counts=counts, seconds=40.0, seed=7, faults=True)
    assert result.holds == holds


def test_figures_add_up_and_are_explained() -> None:
    """JSON has every promised figure, the summary explains each, and full mesh is messages x (agents - 1)."""
    counts = Counts(agents=8, messages=100, replays=3, joins=2, retries=4, retries_saved=5, breaker_opened=1)
    result = Result(verdict=verdict_of(9, 1, 0), counts=counts, seconds=40.0, seed=7, faults=True)
    figures = result.as_json()
    explained = {name for group in MEANINGS.values() for name in group}
    assert explained == set(figures) - {"agents", "seed", "faults", "wait_graph"}
    assert figures["messages_full_mesh"] == 700
    assert figures["duplicates_answered"] == 5
    assert figures["orders"] == sum(figures[kind] for kind in ("completed", "degraded", "failed", "unknown"))


def test_without_the_wait_graph_nobody_is_praised_for_circles() -> None:
    """D3: the header names the mode that is not the usual one, and the last line says what was not looked for."""
    for mode, header, last in (
        ("enforce", "faults on\n", "no known circle stood"),
        ("off", "faults on, wait_graph: off\n", "circles were not looked for; the longest wait was 17.2 s."),
    ):
        counts = Counts(longest_wait_ms=17_200)
        result = Result(verdict=verdict_of(10, 0, 0), counts=counts, seconds=40.0, seed=7, faults=True, wait_graph=mode)
        out = StringIO()
        Console(file=out, width=120).print(summary(result))
        assert header in "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
        assert last in last_line(result)


def test_the_first_circle_is_told_with_what_was_done_about_it() -> None:
    """D3: the one that was seen first, by the agents in it; other findings are none."""
    found = [
        {"kind": "deadlock", "subject": "b > c", "first_seen": 9.0, "evidence": {"how": "refused"}},
        {"kind": "deadlock", "subject": "a > b", "first_seen": 5.0, "evidence": {"how": "confirmed"}},
        {"kind": "breaker_opened", "subject": "a", "first_seen": 1.0, "evidence": {}},
    ]
    assert first_circle(found) == "the first circle of waits is found, and one in it gives way: a > b"
    assert first_circle(found[2:]) == ""
