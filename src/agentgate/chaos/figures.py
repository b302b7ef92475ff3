"""What came of a run, as numbers with names: of each load, and of the gate.

Of a load `NAME`: `NAME.calls`; `NAME.answered`, the share that got an answer; `NAME.CODE`, the share that ended with
this code; `NAME.again.CODE`, the share of the repeats; `NAME.p95_s` and `NAME.longest_s`; `NAME.again.longest_s`;
`NAME.open_max`, how many were open at a time.

Of the gate: `circles` of waits that were found; `circles_resolved`, those of which nobody waited for a time-out;
`named_within_s`, the longest from the sending of a call that goes wrong to the naming of its circle, None unless all
were named; `longest_wait_s` of one agent for another; `rest_after_s`, from the last call that goes wrong until all of
them have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from agentgate.errors import CODES

GATE = frozenset({"circles", "circles_resolved", "named_within_s", "longest_wait_s", "rest_after_s"})
OF_LOAD = frozenset({"calls", "answered", "p95_s", "longest_s", "open_max", "again.longest_s"})
P95 = 0.95
MANY = 1_000  # from here on a fraction says nothing


class Made(Struct, frozen=True, kw_only=True):
    """One call that was made: when, and what it came to (`code` is empty for an answer). Times in seconds."""

    load: str
    sent_at: float
    ended_at: float
    code: str
    again: bool = False

    @property
    def seconds(self) -> float:
        """How long its caller waited."""
        return self.ended_at - self.sent_at


class Totals(Struct, frozen=True, kw_only=True):
    """What the gate has counted so far."""

    circles: int = 0
    circles_resolved: int = 0
    longest_wait_s: float = 0.0


def is_figure(name: str, loads: Iterable[str]) -> bool:
    """Whether a run of these loads has a figure of this name."""
    load, _, rest = name.partition(".")
    if not rest:
        return load in GATE
    return load in loads and (rest in OF_LOAD or rest.removeprefix("again.") in CODES)


def is_share(name: str) -> bool:
    """Whether this figure of a load is a share of its calls, from 0 to 1."""
    rest = name.partition(".")[2]
    return rest == "answered" or rest.removeprefix("again.") in CODES


def as_text(name: str, value: float | None) -> str:
    """A figure as people read it."""
    if value is None:
        return "-"
    if is_share(name):
        return f"{value * 100:.3g} %"
    return f"{value:,.0f}" if value >= MANY else f"{value:,.3g}"


def figures_of(
    made: Sequence[Made], loads: Iterable[str], *, fault: str, named_at: Sequence[float], totals: Totals
) -> dict[str, float | None]:
    """All figures of a run of these loads; `named_at`: when each circle was seen to be named.

    What there is nothing to count for is None. A code that did not occur has no figure.
    """
    wrong = [call for call in made if call.load == fault and not call.again]
    faults = sorted(call.sent_at for call in wrong)
    figures: dict[str, float | None] = {
        "circles": totals.circles,
        "circles_resolved": totals.circles_resolved,
        "named_within_s": _named_within(faults, named_at),
        "longest_wait_s": totals.longest_wait_s,
        "rest_after_s": max(call.ended_at for call in wrong) - faults[-1] if wrong else None,
    }
    for load in loads:
        mine = [call for call in made if call.load == load]
        figures.update({f"{load}.{name}": value for name, value in _of_load(mine).items()})
    return {name: None if value is None else round(value, 3) for name, value in figures.items()}


def _of_load(made: Sequence[Made]) -> dict[str, float | None]:
    firsts = [call for call in made if not call.again]
    repeats = [call for call in made if call.again]
    seconds = sorted(call.seconds for call in firsts)
    return {
        "calls": len(firsts),
        "answered": _share(firsts, ""),
        "p95_s": seconds[max(1, -int(-P95 * len(seconds) // 1)) - 1] if seconds else None,
        "longest_s": seconds[-1] if seconds else None,
        "open_max": _open_max(firsts),
        **_codes(firsts),
        "again.longest_s": max((call.seconds for call in repeats), default=None),
        **{f"again.{code}": share for code, share in _codes(repeats).items()},
    }


def _codes(made: Sequence[Made]) -> dict[str, float | None]:
    return {code: _share(made, code) for code in sorted({call.code for call in made} - {""})}


def _share(made: Sequence[Made], code: str) -> float | None:
    return sum(call.code == code for call in made) / len(made) if made else None


def _open_max(made: Sequence[Made]) -> int:
    steps = sorted([(call.sent_at, 1) for call in made] + [(call.ended_at, -1) for call in made])
    is_open = most = 0
    for _, step in steps:
        is_open += step
        most = max(most, is_open)
    return most


def _named_within(faults: Sequence[float], named_at: Sequence[float]) -> float | None:
    if not faults or len(named_at) < len(faults):
        return None
    return max(named - sent for named, sent in zip(named_at, faults, strict=False))
