"""Which of an agent's task types are light: the ones that may try first whether it can be reached again.

When an agent could not be reached at all, its first trials should cost little (B3: real calls, the lightest first).
The rules:

- The typical duration of a task type is the median of its last `SAMPLES` good answers; calls declared heavy are no
  measure of their type and are left out.
- A type is light when its typical duration is at most the (lower) median over the agent's measured types, so about
  half of them are. A type without an answer yet is not light, unless there is none with one.

How it works. The last durations stand in a ring; the median is worked out when it is asked for, which happens only
while an agent's breaker is half-open, and kept until the next answer.

Not covered: when lightness matters (`core.breaker`), and how many types an agent may have (the map's bound).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from agentgate.core.bounded import BoundedMap

SAMPLES: Final = 15  # enough for a median that one outlier does not move


class Lightness:
    """The typical durations of one agent's task types."""

    __slots__ = ("_types",)

    def __init__(self, types_max: int) -> None:
        self._types: BoundedMap[str, _Durations] = BoundedMap(types_max)

    def add(self, task_type: str, duration_s: float) -> None:
        """A good answer of this type took so long."""
        durations = self._types.get(task_type)
        if durations is None:
            durations = self._types[task_type] = _Durations()
        durations.add(duration_s)

    def is_light(self, task_type: str) -> bool:
        """Whether calls of this type are among the lighter half."""
        medians = [durations.median() for _, durations in self._types.items()]
        if not medians:
            return True
        durations = self._types.peek(task_type)
        return durations is not None and durations.median() <= _lower_median(medians)


class _Durations:
    __slots__ = ("_known", "_last")

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=SAMPLES)
        self._known: float | None = None

    def add(self, duration_s: float) -> None:
        self._last.append(duration_s)
        self._known = None

    def median(self) -> float:
        if self._known is None:
            self._known = _lower_median(self._last)
        return self._known


def _lower_median(values: deque[float] | list[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]
