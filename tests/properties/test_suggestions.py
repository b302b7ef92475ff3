"""What is proposed is a configuration, whatever was recorded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgate.cli.suggest import fragment
from agentgate.config import KEYS, MECHANISMS, contradictions, load
from agentgate.core.policy import Mode
from agentgate.core.suggest import NOTES, Proposal, Suggestions
from agentgate.errors import FAULTS
from agentgate.model import Span
from tests.core.span_kit import attempt, call, suggested
from tests.tidy.checkout import ROOT

EMITTED = re.compile(r'"(would_\w+)"')
NUMBERS = st.floats(0, 1e7)

spans: st.SearchStrategy[Span] = st.one_of(
    st.builds(
        call,
        st.integers(0, 100),
        at=NUMBERS,
        attempts=st.integers(0, 1000),
        notes=st.lists(st.sampled_from([*NOTES, "would_dance", "50 percent"])).map(tuple),
        status=st.sampled_from(["done", "failed", "refused", "unknown"]),
        caller=st.text(max_size=3),
    ),
    st.builds(
        attempt,
        st.integers(0, 100),
        NUMBERS,
        at=NUMBERS,
        agent=st.sampled_from("ab"),
        queue_ms=NUMBERS,
        timeout_ms=st.none() | NUMBERS,
        code=st.sampled_from(["", "rejected", "deadline_exceeded", "handler_error", "agent_lost"]),
        fault=st.sampled_from([*FAULTS, "strange"]),
        sent=st.booleans(),
    ),
)
OBSERVED: dict[str, Mode] = {name: "observe" for name, known in MECHANISMS.items() if "observe" in known.modes}


def loaded(found: Suggestions, folder: Path) -> Any:
    file = folder / "proposed.yaml"
    file.write_text(fragment(found), encoding="utf-8")
    return load(file)


@settings(max_examples=60)
@given(st.lists(spans, max_size=40), st.integers(1, 30), st.booleans())
def test_no_record_raises_and_what_is_proposed_loads(
    tmp_path_factory: pytest.TempPathFactory, some: list[Span], times: int, observed: bool
) -> None:
    """I2: whatever the spans say, the proposals are keys that exist with values that `config check` accepts."""
    found = suggested(*some * times, modes=OBSERVED if observed else {})
    names = {key.name for key in KEYS} | {f"mechanisms.{name}" for name in MECHANISMS}
    assert {proposal.key for proposal in found.proposals if proposal.in_file} <= names
    loaded(found, tmp_path_factory.getbasetemp())


def test_a_fragment_sets_what_was_proposed(tmp_path: Path) -> None:
    """I2: pasted, each proposal is the value of its key, and what belongs on a card is not in the file."""
    slow = [attempt(n, 12_000, at=n * 5.0, queue_ms=500.0) for n in range(300)]
    calls = [call(n, at=n * 5.0, attempts=3, status="done") for n in range(1000)]
    found = suggested(*slow, *calls, modes={"idempotency": "observe"})
    settings = loaded(found, tmp_path).settings
    assert any(not proposal.in_file for proposal in found.proposals)
    assert settings.retry.attempts_max == 4
    assert settings.breaker.error_ratio == 0.1
    assert settings.mechanisms["idempotency"] == "enforce"
    assert contradictions(load(tmp_path / "proposed.yaml")) == []
    assert fragment(Suggestions(period_s=0, calls=0, attempts=0, proposals=[], silent=[])) == ""


def test_a_proposal_with_odd_text_is_still_text() -> None:
    """F134: names of agents are in reasons, never in the fragment."""
    odd = Proposal(key="retry.max_attempts", current=3, proposed=2, reason="\x1b[31m: {", figures={})
    assert (
        fragment(Suggestions(period_s=0, calls=0, attempts=0, proposals=[odd], silent=[]))
        == "retry:\n  max_attempts: 2\n"
    )


def test_every_note_of_the_code_is_known() -> None:
    """I2: no mechanism notes what `config suggest` has no words for, and no words are left of what nobody notes."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in (ROOT / "src/agentgate").glob("[!t]*/**/*.py")
        if path.name != "suggest.py"
    ]
    emitted = {note for text in texts for note in EMITTED.findall(text)}
    by_code = {"would_loop", "would_chain_limit"}  # the chain guard names them after its codes
    assert emitted | by_code == set(NOTES)


def test_the_way_to_adopt_it_is_as_described(tmp_path: Path) -> None:
    """I2: the page that says how to observe first shows a file that loads, observes all that can be, and names every
    note with what it means.
    """
    page = (ROOT / "docs/how-to/observe-then-enforce.md").read_text(encoding="utf-8")
    file = tmp_path / "agentgate.yaml"
    file.write_text(page.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    modes = load(file).settings.mechanisms
    assert {name: mode for name, mode in modes.items() if mode == "observe"} == OBSERVED
    assert all(f"`{note}`" in page for note in NOTES)
