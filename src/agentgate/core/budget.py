"""The retry budget: all retries of a target together stay a small part of its successes.

What is decided: whether one more retry may be planned for a target, whoever asks.

Rules. A target's budget starts full with 20 tokens. A planned retry takes one, before its wait begins: a hundred
callers that wait are a hundred retries, not none (FAILURES kind 5). Every success brings a tenth of a token, up to the
full 20. So in the long run retries are at most a tenth of successes, and while nothing succeeds they end, whatever
the number of callers. When nothing has been taken for 10 s, there is at least one token, so that a target which nobody
else calls can be found well again. A retry that was planned and then not sent gives its token back.

How it works. Two numbers a target, no timer: the floor is applied when somebody looks. Hedges and fallbacks to the
same target take from the same budget. A target that was forgotten, for room or after an hour or two without a call,
starts full again.

Not covered: whether a retry is right (`core.attempts`) and when (`core.backoff`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentgate.core.bounded import BoundedMap
from agentgate.core.ranges import require

TARGETS_MAX: Final = 10_000  # far more than a gate has agents; each takes a hundred bytes
IDLE_S: Final = 3600.0


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """How many retries a target may get."""

    # A burst of 20 outlives the restart of one instance at moderate load. 0: no more than the one in `floor_s`.
    tokens_max: float = 20.0
    # A tenth: attempts stay below 1.1 times the calls, which a target with any reserve survives (Brooker 2022).
    per_success: float = 0.1
    # An empty budget still lets one through in this time. 0 is refused: it would be no budget.
    floor_s: float = 10.0

    def __post_init__(self) -> None:
        require(self, "tokens_max", high=10_000.0)
        require(self, "per_success", high=1.0)
        require(self, "floor_s", low=0.1, high=3600.0)


class _Tokens:
    __slots__ = ("left", "taken_at")

    def __init__(self, left: float, now: float) -> None:
        self.left = left
        self.taken_at = now


class RetryBudget:
    """The budgets of all targets; `agent` is the resolved target, `now` monotonic seconds."""

    __slots__ = ("_options", "_targets")

    def __init__(self, options: BudgetOptions) -> None:
        self._options = options
        self._targets: BoundedMap[str, _Tokens] = BoundedMap(TARGETS_MAX)

    def __len__(self) -> int:
        return len(self._targets)

    def take(self, agent: str, now: float) -> bool:
        """Plan one retry; False when there is nothing left for it."""
        budget = self._of(agent, now)
        left = self._left(budget, now)
        if left < 1.0:
            return False
        budget.left = left - 1.0
        budget.taken_at = now
        return True

    def refund(self, agent: str, now: float) -> None:
        """A planned retry was not sent after all."""
        self._give(agent, 1.0, now)

    def success(self, agent: str, now: float) -> None:
        """A call of this target came to a value."""
        self._give(agent, self._options.per_success, now)

    def tokens(self, agent: str, now: float) -> float:
        """What is left, for display; a target that nobody knows is full."""
        budget = self._targets.peek(agent)
        return self._options.tokens_max if budget is None else self._left(budget, now)

    def _of(self, agent: str, now: float) -> _Tokens:
        self._targets.sweep(now, IDLE_S)
        budget = self._targets.get(agent)
        if budget is None:
            budget = self._targets[agent] = _Tokens(self._options.tokens_max, now)
        return budget

    def _left(self, budget: _Tokens, now: float) -> float:
        return max(budget.left, 1.0) if now - budget.taken_at >= self._options.floor_s else budget.left

    def _give(self, agent: str, amount: float, now: float) -> None:
        budget = self._of(agent, now)
        budget.left = min(budget.left + amount, self._options.tokens_max)
