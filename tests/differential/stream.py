"""A seeded stream of requests to a store, chosen by what the oracle holds, so that most of them mean something."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from agentgate.adapters.dump import Dump
from agentgate.model import Change, Claim, KeyId, LedgerEvent, Outcome, RecordState, RouteSnapshot, failure

Kind = Literal[
    "begin",
    "lookup",
    "claim",
    "change",
    "find_units",
    "open_records",
    "list_records",
    "sweep",
    "save_routes",
    "load_routes",
]

WEIGHTS: dict[Kind, int] = {
    "claim": 30,
    "change": 40,
    "lookup": 8,
    "find_units": 5,
    "open_records": 3,
    "list_records": 4,
    "sweep": 6,
    "begin": 3,
    "save_routes": 2,
    "load_routes": 1,
}
KEYS = tuple(KeyId("default", "stock", "order", "reserve", f"A-{number}", "run") for number in range(6))
FIRST, LAST = (KEYS[0]._replace(business_key=end) for end in ("", "z"))
STATES: tuple[RecordState, ...] = ("running", "done", "failed", "unknown")
EVENTS: tuple[LedgerEvent, ...] = ("done", "failed", "not_sent", "lost", "not_done")
GATEWAYS = ("one", "two")
TTL_S = 86_400.0
OUTCOMES: dict[str, Outcome] = {"done": Outcome(value={"n": [1, 2.5, None]}), "failed": failure("rejected", sent=True)}


class Step(NamedTuple):
    """One request: the store's method, and what it is called with."""

    kind: Kind
    arguments: tuple[Any, ...]


@dataclass
class Stream:
    """Draws steps. `now` is the wall clock that the requests carry."""

    draws: random.Random
    now: float = 1_800_000_000.0
    units: int = 0
    routes: int = 0
    epochs: dict[str, int] = field(default_factory=dict)

    def steps(self, look: Oracle) -> Iterator[Step]:
        """Requests without end."""
        yield self._begin(look.held)
        while True:
            self.now += self.draws.choice((0.0, 0.0, 0.5, 60.0, TTL_S / 3))
            [kind] = self.draws.choices(list(WEIGHTS), list(WEIGHTS.values()))
            yield getattr(self, f"_{kind}")(look.held)

    def _begin(self, held: Dump) -> Step:
        """A start, now and then with a clock that was set back or far ahead."""
        self.now += self.draws.choice((0.0, 1.0, -3600.0, 3 * TTL_S, 20 * TTL_S))
        if held.expiry is not None:
            self.now = max(self.now, held.expiry.latest)
        gateway = self.draws.choice(GATEWAYS)
        self.epochs[gateway] = held.epochs.get(gateway, 0) + 1
        return Step("begin", (gateway, f"secret-{self.draws.random()}", self.now))

    def _lookup(self, held: Dump) -> Step:
        return Step("lookup", (self._some(KEYS), self.now))

    def _claim(self, held: Dump) -> Step:
        gateway = self.draws.choice(list(self.epochs))
        epoch = self.epochs[gateway] - (self.draws.random() < 0.1)
        return Step("claim", ([self._one_claim(held) for _ in range(self._few())], gateway, epoch, self.now))

    def _one_claim(self, held: Dump) -> Claim:
        key, unit = self.draws.choice(KEYS), self._new_unit()
        named = [record for record in held.records if record.units]
        if named and self.draws.random() < 0.1:  # a claim whose answer got lost
            record = self.draws.choice(named)
            key, unit = record.key, record.units[0].unit
        return Claim(
            key=key,
            fingerprint=self.draws.choice("ffg"),
            agent="stock",
            unit=unit,
            instance="i",
            repeatable=key in KEYS[:3],
            again=self.draws.random() < 0.3,
            payload=self._payload(),
            trace_id="t",
        )

    def _payload(self) -> Any:
        if self.draws.random() < 0.02:
            return object()  # cannot be stored
        return self.draws.choice((None, {"sku": self.draws.random()}, [1, "ä"]))

    def _change(self, held: Dump) -> Step:
        return Step("change", ([self._one_change(held) for _ in range(self._few())], self.now))

    def _one_change(self, held: Dump) -> Change:
        """Mostly about a unit that is open; else about any key, by an old unit, a stranger or an operator."""
        event = self.draws.choice(EVENTS)
        outcome = OUTCOMES.get(event) if self.draws.random() > 0.02 else None
        open_records = [record for record in held.records if record.units]
        if open_records and self.draws.random() < 0.8:
            record = self.draws.choice(open_records)
            unit = self.draws.choice([*(ref.unit for ref in record.units), ""])
            epoch = record.epoch - (self.draws.random() < 0.1)
            return Change(key=record.key, epoch=epoch, unit=unit, event=event, outcome=outcome)
        unit = f"u{self.draws.randrange(self.units + 1)}"
        return Change(key=self.draws.choice(KEYS), epoch=1, unit=unit, event=event, outcome=outcome)

    def _find_units(self, held: Dump) -> Step:
        return Step("find_units", ([*self._some(held.units), f"u{self.draws.randrange(self.units + 1)}"],))

    def _open_records(self, held: Dump) -> Step:
        return Step("open_records", (self.draws.choice((None, *KEYS)), self.draws.choice((1, 3, 100))))

    def _list_records(self, held: Dump) -> Step:
        state = self.draws.choice((None, *STATES))
        bounds = self.draws.choice((FIRST, *KEYS)), self.draws.choice((LAST, *KEYS))
        return Step("list_records", (*bounds, state, self.now, self.draws.choice((1, 3, 100))))

    def _sweep(self, held: Dump) -> Step:
        return Step("sweep", (self.now, self.draws.choice((1, 2, 100))))

    def _save_routes(self, held: Dump) -> Step:
        self.routes += 1
        return Step("save_routes", (RouteSnapshot(version=max(0, self.routes - self.draws.choice((0, 0, 2)))),))

    def _load_routes(self, held: Dump) -> Step:
        return Step("load_routes", ())

    def _new_unit(self) -> str:
        self.units += 1
        return f"u{self.units}"

    def _few(self) -> int:
        return self.draws.choice((1, 1, 2, 3, 6))

    def _some(self, items: Sequence[Any]) -> list[Any]:
        return [self.draws.choice(items) for _ in range(self._few())] if items else []


class Oracle:
    """What the reference holds at the moment; the stream looks at it before each step."""

    def __init__(self, held: Dump) -> None:
        self.held = held
