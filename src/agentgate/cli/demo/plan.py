"""What will happen in a run: when which order arrives, which is sent again, and when what goes wrong.

Everything is drawn from the seed before the run begins, so the same seed tells the same story, as far as real
processes allow. The load has the shape of a shop's day: a rush, a lull, a rush. The warehouse goes away as the first
rush ends. Its breaker then keeps it out of harm's way for about ten seconds, which fall into the lull: an outage in
full rush would cost the same ten seconds, and several times the orders. A process is killed in the lull too: its
orders wait for the next one, and too many waiting orders would make the team itself look ill to the gate.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

RUSH_PER_S: Final = 5.0  # orders; about forty calls a second, which leaves two cores to everybody else
RUSH_PER_S_MAX: Final = 10.0  # what eight ordinary Python processes take without queueing
RUSH_S: Final = 24.0  # with more orders a rush grows denser before it grows longer
LULL_S: Final = 14.0  # a breaker's rest with its spread, and a moment to see it close
LULL_SHARE: Final = 0.06  # of the orders: they meet the open breaker, and degraded orders stay well below a fifth
DEATH_LAG_S: Final = 5.0  # after the rush: the process is back before the next one begins, however busy the machine
OUTAGE_LEAD_S: Final = 1.4  # before the end of the rush: enough orders for five faults in a row
REPEATED_SHARE: Final = 0.12  # of the orders are sent again


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One order: when it is sent, and how long after that once more (None: once is enough). Times in seconds."""

    at_s: float
    order: dict[str, Any]
    again_after_s: float | None = None

    @property
    def id(self) -> str:
        """The order's number, its business key."""
        return str(self.order["id"])


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The whole run; without faults the two moments are None."""

    arrivals: tuple[Arrival, ...]
    outage_at_s: float | None = None  # the warehouse goes away
    death_at_s: float | None = None  # the next message is the last of its process


def make_plan(orders: list[dict[str, Any]], *, seed: int, faults: bool) -> Plan:
    """The run of these orders."""
    lull = round(len(orders) * LULL_SHARE) if faults else 0
    before = (len(orders) - lull + 1) // 2 if faults else len(orders)
    per_s = min(max(RUSH_PER_S, before / RUSH_S), RUSH_PER_S_MAX)
    rush_s = before / per_s
    steps = [1 / per_s] * before
    if faults:
        steps += [LULL_S / (lull + 1)] * (lull + 1) + [1 / per_s] * (len(orders) - before - lull - 1)
    again = _repeats(orders, seed)
    spread = (step * (0.6 + 0.8 * draw(seed, "gap", place)) for place, step in enumerate(steps))
    arrivals = tuple(
        Arrival(at_s=at_s, order=order, again_after_s=again.get(order["id"]))
        for at_s, order in zip(itertools.accumulate(spread), orders, strict=False)
    )
    if not faults:
        return Plan(arrivals=arrivals)
    rush_ends = arrivals[before - 1].at_s
    return Plan(
        arrivals=arrivals,
        outage_at_s=rush_ends - min(OUTAGE_LEAD_S, rush_s * 0.3),
        death_at_s=min(rush_ends + DEATH_LAG_S, arrivals[-1].at_s - 1 / per_s),
    )


def read_orders(path: Path, count: int) -> list[dict[str, Any]]:
    """The first orders of the file; when it is too short, once more from its beginning, under new numbers."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rounds = (_order(row, nth) for nth in itertools.count(1) for row in rows)
    return list(itertools.islice(rounds, count))


def draw(seed: int, *what: object) -> float:
    """A float in [0, 1) that belongs to this seed and thing."""
    digest = hashlib.blake2b(repr((seed, *what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _order(row: dict[str, str], nth: int) -> dict[str, Any]:
    numbers = {name: int(row[name]) for name in ("since", "n", "total_eur")}
    return {**row, **numbers, "id": row["id"] if nth == 1 else f"{row['id']}-{nth}"}


def _repeats(orders: list[dict[str, Any]], seed: int) -> dict[str, float]:
    """Which orders are sent again, and how soon: while the first is under way, or when it is long answered."""
    ids = sorted((str(order["id"]) for order in orders), key=lambda order_id: draw(seed, "again", order_id))
    chosen = ids[: max(1, round(len(ids) * REPEATED_SHARE))]
    return {
        order_id: (0.05 if place % 2 else 3.0) * (1 + draw(seed, "again after", order_id))
        for place, order_id in enumerate(chosen)
    }
