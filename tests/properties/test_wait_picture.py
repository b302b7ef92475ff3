"""What a watcher is sent: differences that lead from one picture of the waits to the next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentgate.core.wait_picture import applied, difference
from agentgate.model import Party, StandingKnot, Wait, WaitKind, WaitPicture

IDS = [f"w{number}" for number in range(6)]
KINDS: list[WaitKind] = ["call", "slot"]


def wait(wait_id: str, kind: WaitKind = "call", *, behind: bool = False) -> Wait:
    return Wait(
        id=wait_id,
        waiter=Party(unit=f"unit of {wait_id}", agent="writer"),
        kind=kind,
        target="editor",
        task_type="improve",
        business_key="page_1",
        behind=behind,
        since=1.0,
        deadline=31.0,
        trace_id="t",
        span_id="s",
    )


def knot(text: str) -> StandingKnot:
    return StandingKnot(text=text, cycle=(), cycle_count=2, units=2, certain=True, advice="")


def picture(seq: int, waits: tuple[Wait, ...], knots: tuple[StandingKnot, ...] = (), **more: bool) -> WaitPicture:
    return WaitPicture(seq=seq, at=float(seq), mode="enforce", waits=waits, knots=knots, **more)


contents = st.tuples(
    st.dictionaries(st.sampled_from(IDS), st.tuples(st.sampled_from(KINDS), st.booleans())),
    st.lists(st.sampled_from(["a > b > a", "c > d > c"]), unique=True),
    st.booleans(),
)


@st.composite
def stories(draw: st.DrawFn) -> list[WaitPicture]:
    """Pictures of one gate, one after the other."""
    return [
        picture(
            seq,
            tuple(wait(name, kind, behind=behind) for name, (kind, behind) in waits.items()),
            tuple(map(knot, texts)),
            truncated=truncated,
        )
        for seq, (waits, texts, truncated) in enumerate(draw(st.lists(contents, min_size=2, max_size=6)), 1)
    ]


def same(one: WaitPicture, other: WaitPicture) -> bool:
    """Whether they show the same, in whatever order."""
    return replace(one, waits=()) == replace(other, waits=()) and {w.id: w for w in one.waits} == {
        w.id: w for w in other.waits
    }


@given(stories())
def test_differences_lead_from_each_picture_to_the_next(story: list[WaitPicture]) -> None:
    """H3: whoever applies all differences to the first picture has the last one; only changes are told."""
    seen = before = story[0]
    for after in story[1:]:
        change = difference(before, after)
        if change is None:
            assert same(replace(before, seq=0, at=0), replace(after, seq=0, at=0))
            continue
        assert change.seq > change.after
        told = [*change.closed, *(item.id for item in (*change.opened, *change.changed))]
        assert len(told) == len(set(told)), "each wait is told of once"
        known = {item.id: item for item in before.waits}
        assert all(item.id not in known for item in change.opened)
        assert all(known[item.id] != item for item in change.changed)
        seen = before = applied(seen, change)
        assert same(seen, after)


@given(stories())
def test_what_comes_and_goes_between_two_pictures_is_never_told(story: list[WaitPicture]) -> None:
    """H3: the difference of two pictures depends on these two alone, whatever was in between."""
    change = difference(story[0], story[-1])
    ends = {item.id for item in (*story[0].waits, *story[-1].waits)}
    told = [] if change is None else [*change.closed, *(item.id for item in (*change.opened, *change.changed))]
    assert ends.issuperset(told)


def test_a_difference_of_another_picture_is_refused() -> None:
    """H3: a gap is noticed, not papered over."""
    change = difference(picture(1, ()), picture(2, (wait("w1"),)))
    assert change is not None
    with pytest.raises(ValueError, match="a difference from 1 does not fit the picture 5"):
        applied(picture(5, ()), change)
