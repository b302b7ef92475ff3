"""Who may register now, and when the others come again."""

from __future__ import annotations

import pytest

from agentgate.core.admission import AGAIN_S_MAX, SPREAD_S, Admission, AdmissionOptions


def admission(per_s: float | None = 10.0, burst: int = 5, draw: float = 0.0) -> Admission:
    return Admission(AdmissionOptions(hello_per_s=per_s, hello_burst=burst), lambda: draw)


def newcomers(policy: Admission, count: int, now: float = 0.0) -> list[float | None]:
    return [policy.ask(now, known=False) for _ in range(count)]


def test_a_burst_is_taken_and_the_rest_come_one_by_one() -> None:
    """A5: who is sent away is told a turn of its own, as far apart as the limit wants them."""
    policy = admission()
    assert not policy.is_crowded(0.0)
    waits = newcomers(policy, 9)
    assert waits[:5] == [None] * 5
    assert waits[5:] == pytest.approx([0.2, 0.3, 0.4, 0.5])
    assert policy.is_crowded(0.4)
    assert not policy.is_crowded(0.6)
    for wait_s in waits[5:]:
        assert wait_s is not None
        assert policy.ask(wait_s, known=False) is None


def test_a_turn_has_a_random_part() -> None:
    """A5: those who were sent away in one instant do not come back in step."""
    policy = admission(burst=1, draw=0.5)
    assert newcomers(policy, 2)[1] == pytest.approx(0.2 + SPREAD_S / 2)


def test_a_large_crowd_is_spread_and_not_sent_away_for_ever() -> None:
    """A5, B14: no turn is later than half a minute, however many come; whoever stops coming holds nobody up."""
    late = newcomers(admission(draw=0.5), 1000)[-1]
    assert late == AGAIN_S_MAX * 0.75
    policy = admission()
    newcomers(policy, 1000)
    assert policy.ask(AGAIN_S_MAX + 1, known=False) is None
    assert not policy.is_crowded(AGAIN_S_MAX + 1)


def test_the_known_go_first() -> None:
    """A5, G1: who may have units in hand is always taken; newcomers wait for as long as a burst takes, at most."""
    policy = admission()
    assert [policy.ask(0.0, known=True) for _ in range(100)] == [None] * 100
    [wait_s] = newcomers(policy, 1)
    assert wait_s == pytest.approx(0.4 + 0.1 + 0.1)
    assert policy.ask(0.51, known=False) is None


def test_without_a_limit_everybody_is_taken() -> None:
    """I2: off means off."""
    assert newcomers(admission(per_s=None), 1000) == [None] * 1000


@pytest.mark.parametrize("wrong", [{"hello_per_s": 0.0}, {"hello_per_s": -1.0}, {"hello_burst": 0}])
def test_options_are_checked(wrong: dict[str, float]) -> None:
    """F26: a limit that lets nobody in is refused where it is written."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        AdmissionOptions(**wrong)  # type: ignore[arg-type]  # wrong on purpose
