"""When to try to connect again (REQUIREMENTS A5).

A round is five tries, 200 ms x 2^n + 0-200 ms apart; between rounds the process leaves the gate alone for 2-4 s. After
a link that worked, the first try waits a random moment: all clients of a gate that restarts lose their links in the
same instant. A gate that refuses for now names the time itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from agentgate.core.backoff import Backoff, BackoffOptions

ROUND: Final = BackoffOptions(base_s=0.2, jitter_s=0.2, attempts_max=5)  # REQUIREMENTS A5


@dataclass(frozen=True, kw_only=True, slots=True)
class ReconnectOptions:
    """How a process tries to reach its gate."""

    round: BackoffOptions = ROUND
    pause_s: float = 2.0  # between rounds, plus as much again by chance (DESIGN 4.5)
    spread_s: float = 1.5  # half the 3 s for which the gate keeps the units of a lost link: a second try still fits

    def __post_init__(self) -> None:
        if min(self.pause_s, self.spread_s) < 0:
            raise ValueError("times are not negative")


class Reconnect:
    """Counts tries and says how long to wait before the next."""

    def __init__(self, options: ReconnectOptions, draw: Callable[[], float]) -> None:
        self._options = options
        self._backoff = Backoff(options.round)
        self._draw = draw
        self._failures = 0

    def worked(self) -> None:
        """The gate welcomed this process."""
        self._failures = 0

    def after_loss_s(self) -> float:
        """A link that worked was lost."""
        return self._options.spread_s * self._draw()

    def after_failure_s(self, retry_after_s: float | None = None) -> float:
        """A try failed; `retry_after_s` is what the gate asked for."""
        self._failures += 1
        if self._failures < self._options.round.attempts_max or retry_after_s is not None:
            return self._backoff.delay_s(self._failures, self._draw, retry_after_s)
        self._failures = 0
        return self._options.pause_s * (1 + self._draw())
