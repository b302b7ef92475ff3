"""Counts what came of the orders, and holds what was claimed against what was done.

The effects are counted from the outside: in the file that the agents wrote to, after the run, by grouping its rows.
Neither the gate nor an agent is asked. An order is

- `completed`: it has a definite answer, and its customer knows it. Confirmed, or declined for a business reason: sold
  out, not to be trusted. A justified "no" is what such a team is for.
- `degraded`: it is back-ordered because something did not work; or its customer could not be told.
- `failed`: the call ended in an error; or its receipt claims an effect that is not in the file.
- `unknown`: nobody can say whether it happened.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from agentgate.cli.demo.clients import Ending

Kind = Literal["completed", "degraded", "failed", "unknown"]
Effects = dict[str, Counter[str]]  # order -> what -> how often

COMPLETION_RATE_MIN: Final = 0.99


@dataclass(kw_only=True)
class Verdict:
    """The counts of a run. Sentences about what is wrong are in `findings`."""

    orders: int
    kinds: Counter[str]
    declined: int
    effects: int
    effects_twice: int
    answers_differ: int  # repeats that were told something else than the first
    seconds: list[float]  # of each order, sorted
    findings: list[str] = field(default_factory=list)

    @property
    def completion_rate(self) -> float:
        """The share of orders that were completed, or ended in the degraded branch that was made for them."""
        return (self.kinds["completed"] + self.kinds["degraded"]) / self.orders if self.orders else 0.0

    @property
    def holds(self) -> bool:
        """Whether the bars hold."""
        return self.completion_rate >= COMPLETION_RATE_MIN and self.effects_twice == 0

    def percentile_ms(self, share: float) -> float:
        """The time within which this share of the orders was answered (nearest rank)."""
        if not self.seconds:
            return 0.0
        rank = max(1, -int(-share * len(self.seconds) // 1))
        return round(self.seconds[rank - 1] * 1000, 1)


def judge(endings: Iterable[Ending], orders: int, effects: Effects) -> Verdict:
    """The verdict on a run; an order that never ended counts as failed."""
    known = list(endings)
    kinds: Counter[str] = Counter()
    findings = []
    for ending in known:
        kind, finding = kind_of(ending, effects.get(ending.order_id, Counter()))
        kinds[kind] += 1
        if finding:
            findings.append(f"{ending.order_id}: {finding}")
    kinds["failed"] += orders - len(known)
    twice = [f"{order_id}: {what} {n} times" for order_id, row in effects.items() for what, n in row.items() if n > 1]
    return Verdict(
        orders=orders,
        kinds=kinds,
        declined=sum(1 for ending in known if ending.receipt and ending.receipt["status"] == "declined"),
        effects=sum(row.total() for row in effects.values()),
        effects_twice=len(twice),
        answers_differ=sum(repeat != ending.receipt for ending in known for repeat in ending.repeats),
        seconds=sorted(ending.seconds for ending in known),
        findings=twice + findings,
    )


def kind_of(ending: Ending, done: Counter[str]) -> tuple[Kind, str]:
    """What an order counts as, and what is wrong with it, if anything."""
    receipt = ending.receipt
    if receipt is None:
        return ("unknown" if ending.code == "outcome_unknown" else "failed"), ending.detail or ending.code
    missing = sorted(claimed(receipt) - set(done))
    if missing:
        return "failed", f"the receipt claims what did not happen: {', '.join(missing)}"
    if receipt["status"] != "confirmed" and done["confirmed"]:
        return "failed", f"the receipt says {receipt['status']}, but the order was confirmed"
    if receipt["status"] == "back_ordered":
        return "degraded", ""
    return ("completed", "") if receipt["told"] else ("degraded", "the customer was not told")


def claimed(receipt: dict[str, Any]) -> set[str]:
    """The effects that must be in the file if this receipt is true."""
    effects = {"confirmed": {"confirmed"}, "back_ordered": {"back_ordered"}, "declined": set()}[receipt["status"]]
    by_field = {"told": "notified", "shelf": "reserved", "voucher": "voucher"}
    return effects | {what for name, what in by_field.items() if receipt[name]}


def read_effects(path: Path) -> Effects:
    """What is in the file, grouped: how often each thing was done for each order."""
    effects: Effects = defaultdict(Counter)
    if not path.exists():
        return effects
    with closing(sqlite3.connect(path, timeout=10)) as file:
        rows = file.execute("SELECT order_id, what, count(*) FROM effects GROUP BY order_id, what")
        for order_id, what, count in rows:
            effects[order_id][what] = count
    return effects
