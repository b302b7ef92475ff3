"""What commands show: text and nothing but text, whatever an agent calls itself."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agentgate.cli import exits
from agentgate.cli.agents import seconds_of, skills_of
from agentgate.cli.call import PAYLOAD_BYTES_MAX, read_payload, show_answer
from agentgate.cli.chains import trees_of
from agentgate.cli.dev import names_to_reload
from agentgate.cli.exits import CommandError
from agentgate.cli.output import cell, shown
from agentgate.cli.supervisor import Supervisor
from agentgate.cli.wait_trees import shown_picture
from agentgate.cli.wait_trees import trees_of as wait_trees_of
from agentgate.model import Outcome, Party, StandingKnot, Wait, WaitPicture


def span(span_id: str, parent_id: str = "", **more: Any) -> dict[str, Any]:
    return {
        "span_id": span_id,
        "parent_id": parent_id,
        "kind": "call",
        "caller": "shop",
        "target": "stock",
        "task_type": "reserve",
        **more,
    }


def printed(thing: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(thing)
    return out.getvalue()


@given(st.text())
def test_only_printable_text_reaches_the_terminal(text: str) -> None:
    """F134: control characters, escapes and invisible ones are shown as escapes; nothing is lost or interpreted."""
    assert shown(text).isprintable()
    if text.isprintable():
        assert shown(text) == text


@pytest.mark.parametrize("name", ["[red]x[/red]", "[bold", "a\x1b[2Jb", "<img onerror=1>", "\u202edrow"])
def test_names_are_never_markup(name: str) -> None:
    """F134: what looks like markup or moves the cursor is shown as it is written."""
    assert str(cell(name)) == shown(name)
    assert shown(name) in printed(trees_of([span("1", target=name)])[0])
    assert "\x1b" not in printed(trees_of([span("1", detail=name, code=name)])[0])


def test_spans_hang_under_their_parents() -> None:
    """H1: calls and attempts are one tree a root; a span whose parent is not known is a root of its own."""
    spans = [
        span("1"),
        span("2", "1", kind="attempt", attempt=1, instance="i1", status="failed", code="agent_lost", wait_ms=2.0),
        span("3", "1", kind="attempt", attempt=2, instance="i2", gap_ms=500.0, wait_ms=1.0),
        span("4", "3", caller="stock", target="shelf"),
        span("5", "elsewhere", target="other"),
    ]
    trees = trees_of(spans)
    assert len(trees) == 2
    assert [line.rstrip() for line in printed(trees[0]).splitlines()] == [
        "shop → stock reserve  done  0.0 ms",
        "├── attempt 1 at i1  failed agent_lost  2.0 ms",
        "└── attempt 2 at i2  done  1.0 ms, after 500.0",
        "    └── stock → shelf reserve  done  0.0 ms",
    ]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_odd_parents_do_no_harm(pairs: list[tuple[int, int]]) -> None:
    """Doubled ids, circles and spans that are their own parents neither hang the tree nor raise."""
    trees_of([span(str(mine), str(parent)) for mine, parent in pairs])


def test_a_deep_chain_is_no_recursion() -> None:
    """A chain of five thousand calls becomes a tree."""
    assert len(trees_of([span(str(n), str(n - 1)) for n in range(5_000)])) == 1


# --- payloads


@pytest.mark.parametrize(
    ("text", "stdin", "value"),
    [("", b"", None), ("null", b"", None), ('{"a": [1]}', b"", {"a": [1]}), ("-", b'"x"', "x"), ("7", b"", 7)],
)
def test_a_payload_is_json_from_three_places(text: str, stdin: bytes, value: Any) -> None:
    """The payload comes from the argument, standard input, or nowhere, which is null."""
    assert read_payload(text, io.BytesIO(stdin)) == value


def test_a_payload_may_be_a_file(tmp_path: Path) -> None:
    """`@FILE` reads the file."""
    file = tmp_path / "order.json"
    file.write_bytes(msgspec.json.encode({"sku": "A-7"}))
    assert read_payload(f"@{file}", io.BytesIO()) == {"sku": "A-7"}


@pytest.mark.parametrize(
    ("text", "stdin", "sentence"),
    [
        ("order", b"", "the payload is not JSON"),
        ("-", b"\xff", "standard input is not JSON"),
        ("-", b"x" * (PAYLOAD_BYTES_MAX + 1), "standard input is larger than 1048576 bytes"),
        ("[" * 100_000, b"", "the payload is not JSON"),
        ("@missing", b"", "cannot read missing: No such file or directory"),
    ],
)
def test_a_bad_payload_is_a_sentence(text: str, stdin: bytes, sentence: str) -> None:
    """What cannot be read as JSON is a user's mistake, with its place."""
    with pytest.raises(CommandError, match=sentence) as raised:
        read_payload(text, io.BytesIO(stdin))
    assert raised.value.code == exits.MISUSED


# --- reload


def test_a_change_restarts_whom_it_concerns(tmp_path: Path) -> None:
    """An agent's own file restarts that agent alone, any other file restarts everybody."""
    files = [tmp_path / "stock.py", tmp_path / "order.py"]
    supervisor = Supervisor(files, environ={}, tell=lambda _: None, show=lambda *_: None, draw=lambda: 0.5)
    assert names_to_reload([tmp_path / "stock.py"], supervisor) == {"stock"}
    assert names_to_reload([tmp_path / "shop.py"], supervisor) == {"stock", "order"}
    assert names_to_reload([], supervisor) == set()


@pytest.mark.parametrize(("text", "seconds"), [("60", 60), ("60s", 60), ("1.5m", 90), ("2 h", 7200), (" 5m ", 300)])
def test_times_have_their_unit(text: str, seconds: float) -> None:
    """A time is written as one says it; a bare number is seconds."""
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "1d", "-5s", "1e3", "5 5s"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """The sentence shows what a time looks like."""
    with pytest.raises(CommandError, match="write 60s, 5m or 1h"):
        seconds_of(text)


# --- who waits for whom


def unit(name: str) -> Party:
    return Party(unit=name, agent=f"agent {name}", task_type="do", business_key="k")


def wait(number: int, waiter: str, *holders: str, **more: Any) -> Wait:
    """A unit, or (empty) a caller from outside, waits for these units."""
    shown_as = {"kind": "call", "target": "next", "since": 100.0, **more}
    return Wait(
        id=f"w{number}",
        waiter=unit(waiter) if waiter else Party(agent="shop"),
        task_type="do",
        business_key="k",
        holders=tuple(map(unit, holders)),
        holders_count=len(holders),
        deadline=130.0,
        trace_id="t",
        span_id="s",
        **shown_as,
    )


def forest(*waits: Wait) -> list[str]:
    return [line.rstrip() for tree in wait_trees_of(waits, 102.5) for line in printed(tree).splitlines()]


def test_what_waits_stands_above_what_it_waits_for() -> None:
    """H3: callers on top, units below once in full, and who merely works at the end."""
    lines = forest(
        wait(1, "a", "b", kind="slot"),
        wait(2, "", "a"),
        wait(3, "", "b"),
    )
    assert lines == [
        "shop → next do k  for 2.5 s, until 00:02:10Z",
        "└── agent a do k → next do k  queues for a slot  for 2.5 s, until 00:02:10Z",
        "    └── agent b do k  at work",
        "shop → next do k  for 2.5 s, until 00:02:10Z",
        "└── agent b do k  shown above",
    ]


def test_a_circle_ends_where_it_closes() -> None:
    """H3: two units that wait for one another are two lines, and a third that says so."""
    lines = forest(wait(1, "a", "b", since=0.0), wait(2, "b", "a", behind=True, certain=False))
    assert lines == [
        "agent a do k → next do k  for 1.7 min, until 00:02:10Z",
        "└── agent b do k → next do k  for 2.5 s, until 00:02:10Z  behind a circle  suspected",
        "    └── agent a do k  shown above",
    ]


waits_of_few = st.lists(
    st.tuples(st.sampled_from(["", *"abcd"]), st.lists(st.sampled_from("abcd"), unique=True)), max_size=8
)


@given(waits_of_few)
def test_every_wait_has_its_line_once(pairs: list[tuple[str, list[str]]]) -> None:
    """H3: whatever waits for whatever, nothing is left out, nothing comes twice, and above is above."""
    lines = forest(*(wait(number, waiter, *holders) for number, (waiter, holders) in enumerate(pairs)))
    assert sum(" → " in line for line in lines) == len(pairs)
    bare = [line.lstrip("│├└─ ") for line in lines]
    for place, line in enumerate(bare):
        name, _, said = line.partition("  ")
        assert said != "shown above" or any(above.startswith(name) for above in bare[:place])


def test_a_long_line_of_waits_is_no_recursion() -> None:
    """Five thousand units, each of which waits for the next, become one tree."""
    assert len(wait_trees_of(tuple(wait(n, f"u{n}", f"u{n + 1}") for n in range(5_000)), 0.0)) == 1


@pytest.mark.parametrize("name", ["[red]x[/red]", "[bold", "a\x1b[2Jb"])
def test_names_in_waits_are_never_markup(name: str) -> None:
    """F134: names of agents, and the line of a circle, are shown as they are written."""
    knot = StandingKnot(text=name, cycle=(), cycle_count=2, units=3, certain=False, advice="look")
    picture = WaitPicture(seq=1, at=1.0, mode="off", waits=(wait(1, "a", target=name),), knots=(knot,), truncated=True)
    text = printed(shown_picture(picture))
    assert text.count(shown(name)) == 2
    assert "\x1b" not in text
    for said in ("circle of waits, suspected", "(3 units in all)", "look", "nobody refuses", "only the first 1 waits"):
        assert said in text


def test_a_degraded_answer_is_shown_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    """F6: people get a line beside the value, programs a field."""
    show_answer(Outcome(value="later", degraded=True), as_json=False)
    shown = capsys.readouterr()
    assert json.loads(shown.out) == "later"
    assert shown.err.startswith("degraded: ")
    show_answer(Outcome(value="later", degraded=True), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"status": "done", "value": "later", "degraded": True}


def test_checks_and_degraded_handlers_are_no_skills_for_people() -> None:
    """I1: what only the gate calls is not listed among what an agent can do."""
    offered = [{"task_type": name} for name in ("reserve", "check:reserve", "degraded:reserve", "count")]
    assert skills_of({"skills": offered}) == ["reserve", "count"]
