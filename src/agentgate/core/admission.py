"""How many agents may register in a second, and when the others come again (REQUIREMENTS A5).

When hundreds of agents start at once, the directory is the one thing that all of them need, and each that waits in vain
tries again. What is decided: whether a process that says hello as an agent is taken now, or is sent away, with a time.

Rules. A token bucket: `hello_per_s` registrations a second, `hello_burst` at once after a rest; in any window of w
seconds at most `hello_burst + hello_per_s * w` newcomers are taken. Who is sent away is told at once, because a refusal
costs a fraction of a registration, and gets a turn of its own behind those who were sent away before, plus a random
part: they come back one by one and not in step. Turns that nobody keeps are lost on nobody, for the bucket alone
decides. No turn is later than `AGAIN_S_MAX`; a crowd that large is spread over the second half of it.

Who is *known* goes first and is always taken: an instance that was connected a moment ago, or before a restart, may
run units that are given up when it does not come back in time. It comes once, and known ones are as many as there were.
They use the bucket too (a burst's worth of debt at most), so that newcomers wait meanwhile.

How it works. Two moments: that of the next free turn at the bucket, and that of the last turn that was promised.

Not covered: clients, which register nothing; and the size of a card (`directory.cards`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from agentgate.core.ranges import require

AGAIN_S_MAX: Final = 30.0  # within it some 1 600 agents register at the default rate
SPREAD_S: Final = 0.5  # the random part: some twenty turns at the default rate
EARLY_S: Final = 1e-7  # a turn may come this much early: rounding must not cost another round


@dataclass(frozen=True, kw_only=True, slots=True)
class AdmissionOptions:
    """How many agents may register.

    - `hello_per_s`, 50; None: no limit. A registration costs the gate well below a millisecond; at this rate it keeps
      nineteen twentieths of its time for calls, and 200 agents are in after three seconds.
    - `hello_burst`, 100: an ordinary deployment starts as many at once and notices nothing.
    """

    hello_per_s: float | None = 50.0
    hello_burst: int = 100

    def __post_init__(self) -> None:
        require(self, "hello_per_s", low=0.1, high=100_000.0, off=True)
        require(self, "hello_burst", low=1, high=1_000_000)


class Admission:
    """One bucket for all who register; `draw` gives floats in [0, 1)."""

    def __init__(self, options: AdmissionOptions, draw: Callable[[], float]) -> None:
        self._is_limited = options.hello_per_s is not None
        self._interval_s = 1.0 / (options.hello_per_s or 1.0)
        self._rest_s = (options.hello_burst - 1) * self._interval_s
        self._draw = draw
        self._turn = -inf  # from when on the next newcomer is taken
        self._promised = -inf  # the last turn that somebody was told to come back at

    def ask(self, now: float, *, known: bool) -> float | None:
        """None: the process is taken now. Otherwise the seconds after which it should say hello again."""
        if not self._is_limited:
            return None
        if known or self._turn <= now + EARLY_S:
            self._turn = min(max(self._turn, now - self._rest_s), now + self._rest_s) + self._interval_s
            return None
        self._promised = min(max(self._promised, self._turn) + self._interval_s, now + AGAIN_S_MAX)
        wait_s = self._promised - now
        if wait_s >= AGAIN_S_MAX:
            return AGAIN_S_MAX * (1.0 + self._draw()) / 2.0
        return wait_s + SPREAD_S * self._draw()

    def is_crowded(self, now: float) -> bool:
        """Whether somebody was sent away whose turn is still to come."""
        return self._promised > now
