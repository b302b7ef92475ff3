"""A turn of the event loop begins a bounded amount of work, whatever the links have read."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from agentgate.server.turns import Turns


class Frames:
    """A link with frames of these sizes."""

    def __init__(self, name: str, sizes: list[int], handled: list[tuple[str, int]]) -> None:
        self.is_in_line = False
        self.serves = name.isupper()
        self._name = name
        self._sizes = sizes
        self._handled = handled

    @property
    def has_frames(self) -> bool:
        return bool(self._sizes)

    def handle_next(self) -> int:
        size = self._sizes.pop(0)
        self._handled.append((self._name, size))
        return size


async def handled_by_turn(links: dict[str, list[int]], bytes_a_turn: int) -> list[list[tuple[str, int]]]:
    """What was handled in each turn, until nothing is left."""
    handled: list[tuple[str, int]] = []
    turns = Turns(bytes_a_turn)
    total = sum(len(sizes) for sizes in links.values())
    for name, sizes in links.items():
        turns.take(Frames(name, list(sizes), handled))
    by_turn, seen = [], 0
    while seen < total:
        by_turn.append(handled[seen:])
        seen = len(handled)
        await asyncio.sleep(0)
    return [turn for turn in by_turn if turn]


@given(st.dictionaries(st.sampled_from("abCD"), st.lists(st.integers(1, 50), max_size=20)), st.integers(1, 100))
def test_every_frame_is_handled_once_in_its_order_and_a_turn_is_bounded(
    links: dict[str, list[int]], bytes_a_turn: int
) -> None:
    """B14: no frame is lost or overtaken in its link; a turn exceeds its bound by its last two frames only."""
    by_turn = asyncio.run(handled_by_turn(links, bytes_a_turn))
    flat = [frame for turn in by_turn for frame in turn]
    for name, sizes in links.items():
        assert [size for known, size in flat if known == name] == sizes
    for turn in by_turn:
        assert sum(size for _, size in turn[:-2]) < bytes_a_turn


def test_a_link_that_floods_does_not_hold_up_the_others() -> None:
    """B1: links with frames waiting are served in turn, one frame each."""
    by_turn = asyncio.run(handled_by_turn({"flood": [10] * 100, "quiet": [10]}, 30))
    assert ("quiet", 10) in by_turn[1]


def test_work_that_is_begun_is_finished_before_more_of_it_is_begun() -> None:
    """B14: one agent's answers have half of every turn, however many callers wait; and the callers have the other."""
    callers = {name: [10] * 20 for name in "abcdefgh"}
    by_turn = asyncio.run(handled_by_turn({**callers, "AGENT": [10] * 20}, 40))
    for turn in by_turn[1:8]:
        assert [name == "AGENT" for name, _ in turn] == [True, False, True, False]


def test_large_answers_do_not_keep_callers_out() -> None:
    """B14: an agent whose every frame fills a turn leaves one frame of it to the callers."""
    by_turn = asyncio.run(handled_by_turn({"AGENT": [100] * 5, "caller": [10] * 5}, 30))
    assert all(("caller", 10) in turn for turn in by_turn[1:5])
