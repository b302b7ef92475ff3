"""What a drill has to show, and whether it did: the verdict.

A bar is a bound on one figure of one run. Those of *after* say what is promised. Those of *before* say that the failure
was there: a drill whose naive run is well rehearses nothing. A figure without a value misses its bar; a code that did
not occur has no figure, and counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from agentgate.chaos.figures import as_text

Figures = Mapping[str, float | None]


class Bar(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A figure of a run is at least, or at most, so much; both for exactly that."""

    figure: str
    run: Literal["before", "after"] = "after"
    at_least: float | None = None
    at_most: float | None = None
    meaning: str = ""

    @property
    def has_bound(self) -> bool:
        """Whether it can be missed."""
        return self.at_least is not None or self.at_most is not None

    @property
    def text(self) -> str:
        """The bound, as people write it."""
        if self.at_least == self.at_most:
            return f"= {as_text(self.figure, self.at_least)}"
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return ", ".join(f"{sign} {as_text(self.figure, bound)}" for sign, bound in bounds if bound is not None)

    def holds(self, value: float | None) -> bool:
        """Whether this value is within the bound."""
        if value is None:
            return False
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


class Judged(Struct, frozen=True, kw_only=True):
    """A bar, the value it was held against, and the verdict."""

    figure: str
    run: str
    bar: str
    value: float | None
    holds: bool
    meaning: str


def judge(bars: Iterable[Bar], runs: Mapping[str, Figures]) -> list[Judged]:
    """The verdict on each bar of the runs that there are."""
    return [
        Judged(
            figure=bar.figure,
            run=bar.run,
            bar=bar.text,
            value=(value := runs[bar.run].get(bar.figure, 0.0)),
            holds=bar.holds(value),
            meaning=bar.meaning,
        )
        for bar in bars
        if bar.run in runs
    ]
