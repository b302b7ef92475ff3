"""When to try to connect again (REQUIREMENTS A5).

A round is five tries, 200 ms x 2^n + 0-200 ms apart. Then the breaker towards the gate opens: for 2-4 s the process
leaves it alone, and after that every try is a trial, with as much peace behind each that fails. A gate that refuses for
now is there, so that is no fault, and the time it names is the one that counts. After a link that worked, the first try
waits a random moment: all clients of a gate that restarts lose their links in the same instant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentgate.core.backoff import Backoff, BackoffOptions
from agentgate.core.breaker import Breaker, BreakerOptions

ROUND: Final = BackoffOptions(base_s=0.2, jitter_s=0.2, attempts_max=5)  # REQUIREMENTS A5
LATE_S: Final = 0.001  # a timer may ring a little early, and the breaker would still be open
SPREAD: Final = 1 / 3  # of the pause either way: 2-4 s are 3 s and a third


@dataclass(frozen=True, kw_only=True, slots=True)
class ReconnectOptions:
    """How a process tries to reach its gate."""

    round: BackoffOptions = ROUND
    pause_s: float = 3.0  # after a round, a third more or less by chance: 2-4 s (DESIGN 4.5)
    spread_s: float = 1.5  # half the 3 s for which the gate keeps the units of a lost link: a second try still fits

    def __post_init__(self) -> None:
        if self.pause_s <= 0 or self.spread_s < 0:
            raise ValueError("times are not negative, and a pause is not nothing")


class Reconnect:
    """Counts tries and says how long to wait before the next."""

    def __init__(self, options: ReconnectOptions, draw: Callable[[], float]) -> None:
        self._options = options
        self._backoff = Backoff(options.round)
        self._draw = draw
        self._failures = 0
        self._breaker = Breaker(_breaker_options(options), draw, 0.0)

    def worked(self, now: float) -> None:
        """The gate welcomed this process."""
        self._failures = 0
        self._breaker.leave(self._breaker.enter(now), "ok", now)

    def after_loss_s(self) -> float:
        """A link that worked was lost."""
        return self._options.spread_s * self._draw()

    def after_failure_s(self, now: float, retry_after_s: float | None = None) -> float:
        """A try failed; `retry_after_s` is what the gate asked for, if it was the gate that said no."""
        if retry_after_s is not None:
            return self._backoff.delay_s(1, self._draw, retry_after_s)
        self._failures += 1
        self._breaker.leave(self._breaker.enter(now), "fault", now)
        pause_s = self._breaker.refusal(now)
        return self._backoff.delay_s(self._failures, self._draw) if pause_s is None else pause_s + LATE_S


def _breaker_options(options: ReconnectOptions) -> BreakerOptions:
    """Opens after a round, and closes with the first try that works."""
    return BreakerOptions(
        faults_in_a_row=options.round.attempts_max,
        outcomes_min=options.round.attempts_max,
        error_ratio=1.0,
        open_s=options.pause_s,
        open_max_s=options.pause_s,
        open_spread=SPREAD,
        half_open_max=1,
        successes_to_close=1,
    )
