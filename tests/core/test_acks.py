"""Cumulative acknowledgement of keyed answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentgate.core.acks import Acks


def test_nothing_received_is_acknowledged_by_nothing() -> None:
    """A settlement of an answer that never came moves nothing."""
    acks = Acks()
    assert acks.settled(3) is None
    assert acks.acked == 0


def test_an_acknowledged_answer_does_not_come_back() -> None:
    """C5: a repeated answer below the acknowledgement is old news."""
    acks = Acks()
    acks.received(1)
    assert acks.settled(1) == 1
    acks.received(1)
    assert acks.settled(1) is None


@given(st.permutations(range(5, 15)))
def test_what_is_acknowledged_is_settled(order: list[int]) -> None:
    """C4: an instance may forget exactly what is on disk, in whatever order the disk took it."""
    acks = Acks()
    for seq in range(5, 15):
        acks.received(seq)
    done: set[int] = set()
    for seq in order:
        acks.settled(seq)
        done.add(seq)
        settled_prefix = 4
        while settled_prefix + 1 in done:
            settled_prefix += 1
        assert acks.acked == (settled_prefix if settled_prefix >= 5 else 0)
    assert acks.acked == 14
