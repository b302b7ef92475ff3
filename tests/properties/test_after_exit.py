"""What follows an exit of an agent's process: one table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgate.cli.supervisor import Next, SupervisorOptions, after_exit, exit_text, names_of

OPTIONS = SupervisorOptions()

# code, how long it ran, crashes before -> what follows (with a draw of 1, the upper end of the back-off)
TABLE = [
    (0, 0.1, 0, Next("finished")),
    (0, 100.0, 9, Next("finished")),
    (78, 0.1, 0, Next("gave_up")),
    (1, 0.1, 0, Next("crashed", 0.5, 1)),
    (1, 0.1, 1, Next("crashed", 1.0, 2)),
    (1, 0.1, 5, Next("crashed", 16.0, 6)),
    (1, 0.1, 6, Next("crashed", 30.0, 7)),
    (1, 0.1, 9, Next("crashed", 30.0, 10)),
    (1, 0.1, 10, Next("gave_up", crashes=11)),
    (1, 10.0, 10, Next("crashed", 0.5, 1)),
    (-9, 9.9, 3, Next("crashed", 4.0, 4)),
    (75, 0.1, 0, Next("restarting", 0.0, 1)),
    (75, 60.0, 8, Next("restarting", 0.0, 1)),
    (75, 0.1, 1, Next("restarting", 1.0, 2)),
    (75, 0.1, 10, Next("gave_up", crashes=11)),
]


@pytest.mark.parametrize(("code", "ran_s", "crashes", "following"), TABLE)
def test_what_follows_an_exit(code: int, ran_s: float, crashes: int, following: Next) -> None:
    """G1: a good end is an end, a wrong setting too; a crash backs off, a request to restart does not, both bounded."""
    assert after_exit(code, ran_s, crashes, OPTIONS, lambda: 1.0) == following


@given(st.integers(-64, 255), st.floats(0, 1e6), st.integers(0, 100), st.floats(0, 1, exclude_max=True))
def test_nothing_is_started_again_at_once_twice(code: int, ran_s: float, crashes: int, draw: float) -> None:
    """Whatever a process does, its second quick end in a row waits, and after ten there is no third chance."""
    following = after_exit(code, ran_s, crashes, OPTIONS, lambda: draw)
    if following.again_in_s is not None:
        assert 0 <= following.again_in_s <= OPTIONS.backoff_max_s
        assert following.crashes <= OPTIONS.crashes_max
        assert following.again_in_s >= OPTIONS.backoff_s / 2 or (code == 75 and following.crashes == 1)


def test_drawn_back_offs_differ() -> None:
    """F27: agents that crash together do not come back in step."""
    draws = iter([number / 20 for number in range(20)])
    waits = {after_exit(1, 0.1, 3, OPTIONS, lambda: next(draws)).again_in_s for _ in range(20)}
    assert len(waits) == 20


def test_files_of_one_name_are_told_apart() -> None:
    """Two files of one name, or one file twice, get numbers."""
    files = [Path("a/stock.py"), Path("b/stock.py"), Path("order.py"), Path("a/stock.py")]
    assert names_of(files) == ["stock", "stock#2", "order", "stock#3"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (78, "ended with exit code 78: a setting is wrong, or the gate refuses it"),
        (-9, "was killed by SIGKILL"),
        (-200, "got signal 200"),
    ],
)
def test_an_exit_is_said_in_words(code: int, text: str) -> None:
    """Exit codes and signals are named."""
    assert exit_text(code) == text
