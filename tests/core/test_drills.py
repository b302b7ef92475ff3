"""How a drill is judged: figures from calls, verdicts from figures, and what is wrong with a drill file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.chaos.bars import Bar, judge
from agentgate.chaos.drill import drills, read_drill
from agentgate.chaos.figures import Made, Totals, as_text, figures_of, is_figure
from agentgate.chaos.rehearsal import moments
from agentgate.errors import ConfigError

KNOWN = drills()
LOADS = ("wrong", "others")


def made(sent_at: float, ended_at: float, code: str = "", load: str = "wrong", *, again: bool = False) -> Made:
    return Made(load=load, sent_at=sent_at, ended_at=ended_at, code=code, again=again)


def figures(*calls: Made, named_at: tuple[float, ...] = ()) -> Mapping[str, float | None]:
    return figures_of(calls, LOADS, fault="wrong", named_at=named_at, totals=Totals(circles=len(named_at)))


@pytest.mark.parametrize(
    ("bar", "value", "holds", "text"),
    [
        (Bar(figure="circles", at_least=1), 1, True, "≥ 1"),
        (Bar(figure="circles", at_least=1), 0, False, "≥ 1"),
        (Bar(figure="circles", at_most=3), 3, True, "≤ 3"),
        (Bar(figure="circles", at_most=3), 3.1, False, "≤ 3"),
        (Bar(figure="circles", at_most=3), None, False, "≤ 3"),
        (Bar(figure="circles", at_least=1, at_most=1), 1, True, "= 1"),
        (Bar(figure="circles", at_least=1, at_most=1), 2, False, "= 1"),
        (Bar(figure="circles", at_least=0, at_most=0), None, False, "= 0"),
        (Bar(figure="circles", at_least=1, at_most=2), 1.5, True, "≥ 1, ≤ 2"),
    ],
)
def test_a_bar_is_a_bound_and_nothing_is_within_no_bound(bar: Bar, value: float | None, holds: bool, text: str) -> None:
    """J: the verdict is arithmetic; a figure without a value misses its bar, even one of zero."""
    [judged] = judge([bar], {"after": {"circles": value}})
    assert (judged.holds, judged.value, judged.bar) == (holds, value, text)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("others.answered", 1.0, "100 %"),
        ("others.again.in_progress", 0.996, "99.6 %"),
        ("wrong.needs_human", 0.0, "0 %"),
        ("wrong.p95_s", 1.0, "1"),
        ("circles", 1_200, "1,200"),
        ("others.answered", None, "-"),
    ],
)
def test_a_share_is_shown_in_per_cent(name: str, value: float | None, text: str) -> None:
    """J: "1" of a share reads like one call."""
    assert as_text(name, value) == text


def test_a_run_that_was_not_made_is_not_judged() -> None:
    """Without --compare there is no verdict on `before`; a code that did not occur counts as 0."""
    bars = [
        Bar(figure="circles", run="before", at_least=9),
        Bar(figure="others.internal", at_most=0),
        Bar(figure="wrong.needs_human", at_least=1),
    ]
    judged = judge(bars, {"after": figures(made(0, 1))})
    assert [(one.figure, one.holds) for one in judged] == [("others.internal", True), ("wrong.needs_human", False)]


def test_figures_tell_each_load_and_its_repeats_apart() -> None:
    """Shares are of the first calls, or of the repeats; times are those of the callers."""
    told = figures(
        made(10, 12, "needs_human"),
        made(11, 12, "needs_human"),
        made(11, 11.1, "in_progress", again=True),
        made(12, 16),
        made(20, 20.5, load="others"),
        named_at=(10.5, 11.5, 14),
    )
    assert told == {
        "circles": 3,
        "circles_resolved": 0,
        "named_within_s": 2,
        "longest_wait_s": 0,
        "rest_after_s": 4,
        "wrong.calls": 3,
        "wrong.answered": 0.333,
        "wrong.needs_human": 0.667,
        "wrong.open_max": 2,
        "wrong.p95_s": 4,
        "wrong.longest_s": 4,
        "wrong.again.in_progress": 1,
        "wrong.again.longest_s": 0.1,
        "others.calls": 1,
        "others.answered": 1,
        "others.open_max": 1,
        "others.p95_s": 0.5,
        "others.longest_s": 0.5,
        "others.again.longest_s": None,
    }
    assert all(is_figure(name, LOADS) for name in told)


def test_what_did_not_happen_has_no_figure() -> None:
    """No call: no share and no time; a circle too few: nothing is said about when circles are named."""
    assert figures()["others.answered"] is figures()["others.p95_s"] is figures()["rest_after_s"] is None
    assert figures(made(0, 1), made(1, 2), named_at=(1,))["named_within_s"] is None


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 30), st.sampled_from(["", "deadlock"])), min_size=1))
def test_figures_stay_within_their_ranges(calls: list[tuple[float, float, str]]) -> None:
    """Shares add up to one, and p95 is a time that really occurred, not above the longest."""
    told = figures(*(made(at_s, at_s + seconds, code) for at_s, seconds, code in calls))
    shares = [told["wrong.answered"] or 0.0, told.get("wrong.deadlock") or 0.0]
    assert sum(shares) == pytest.approx(1, abs=0.002)
    assert (told["wrong.p95_s"] or 0.0) <= (told["wrong.longest_s"] or 0.0)
    assert 0 <= (told["wrong.open_max"] or 0) <= len(calls)


@pytest.mark.parametrize("name", KNOWN)
def test_a_drill_makes_the_same_calls_in_every_run(name: str) -> None:
    """J: before and after meet the same load: moments depend on the drill and on what is drawn, and on nothing else."""
    drill = KNOWN[name].drill
    for load in drill.loads:
        first, second = (list(moments(drill, load, lambda _what, number: number % 7 / 7)) for _ in range(2))
        assert first == second == sorted(first)
        begins = min(drill.begins_at(phase) for phase in load.during)
        assert begins <= first[0] <= first[-1] <= drill.lasts_s + load.after_s


@pytest.mark.parametrize("name", KNOWN)
def test_a_drill_shows_that_its_failure_was_there(name: str) -> None:
    """J: every drill has bars for both runs, and differs in settings alone; its agents are where it says."""
    found = KNOWN[name]
    assert {bar.run for bar in found.drill.bars} == {"before", "after"}
    assert found.drill.settings["before"]
    assert all(file.is_file() for file in found.agent_files())


FLAWS: list[tuple[str, str, str]] = [
    ('fault = "circles"', 'fault = "nothing"', "no load of that name"),
    ('figure = "circles.answered"', 'figure = "circles.answred"', "no figure 'circles.answred'"),
    ('figure = "circles.answered"\nat_least = 1', 'figure = "circles.answered"', "has no bound"),
    ("quiet = 3\n", "", "each with its seconds"),
    ("expected_s = 5", "expected = 5", "unknown field `expected`"),
    ("expected_s = 5", "expected_s = ", "value"),
]


@pytest.mark.parametrize(("was", "becomes", "says"), FLAWS)
def test_what_is_wrong_with_a_drill_is_said_with_its_place(was: str, becomes: str, says: str, tmp_path: Path) -> None:
    """A mistake in a drill is one sentence with the file, not a drill that passes by accident."""
    text = (KNOWN["call-cycle"].folder / "drill.toml").read_text(encoding="utf-8")
    assert was in text
    (tmp_path / "drill.toml").write_text(text.replace(was, becomes), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_drill(tmp_path)
    told: Any = str(caught.value)
    assert str(tmp_path / "drill.toml") in told
    assert says.lower() in told.lower()
