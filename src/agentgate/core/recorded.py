"""What spans say about the past, counted for whoever proposes settings (`core.suggest`; REQUIREMENTS I2).

Decides nothing. Spans may come in any order, and each is looked at once:

- an *attempt* says how long its target took, whether that was a fault of it (`core.verdict`), at which instance it ran
  beside how many others, and how long it waited in the queue;
- a *call* says when its sender sent it, after how many attempts it ended and how, and what mechanisms in observe mode
  would have done (`would_…`, named once a call however often it was noted).

Names come from agents and callers, so their number is bounded: beyond `NAMES_MAX` of a kind the newcomers are counted
as left out. What is kept of one target or instance is bounded as well; the rest would say the same.

Not covered: heavy work and skills with a time of their own cannot be told from other work by a span; their attempts had
other time-outs, which is how `core.suggest` knows them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Generic, TypeVar, cast

from agentgate.core.verdict import verdict_of
from agentgate.errors import FAULTS, Fault
from agentgate.model import Outcome, Problem, Span

NAMES_MAX: Final = 1_000  # targets, instances and senders, each
SAMPLES_MAX: Final = 10_000  # of one target or instance
ANSWERS: Final = frozenset({"", "rejected", "malformed_output"})  # the codes after which a duration means something
WOULD: Final = "would_"
FAULTY: Final = frozenset({"raised", "unanswered", "unconnected"})

T = TypeVar("T")


class Named(dict[tuple[str, str], T], Generic[T]):
    """Things by two names; `None` for a new pair of names when there are too many."""

    def __init__(self, make: type[T]) -> None:
        super().__init__()
        self._make = make
        self.left_out = 0

    def of(self, one: str, other: str) -> T | None:
        """The thing of these names, made if there is room."""
        known = self.get((one, other))
        if known is None and len(self) < NAMES_MAX:
            known = self[one, other] = self._make()
        if known is None:
            self.left_out += 1
        return known


class Target:
    """One agent and task type: durations in ms, time-outs that attempts had, and outcomes by window of time."""

    def __init__(self) -> None:
        self.durations: list[float] = []
        self.cut = 0
        self.longest_timeout_ms = 0.0
        self.outcomes: Counter[int] = Counter()
        self.faults: Counter[int] = Counter()


class Runs:
    """One instance: from when to when its attempts ran, in seconds, and how long each had waited, in ms."""

    def __init__(self) -> None:
        self.intervals: list[tuple[float, float]] = []
        self.waits: list[float] = []

    def most_at_once(self) -> int:
        """How many ran at the same moment, at most."""
        ends = [(began, 1) for began, _ in self.intervals] + [(ended, -1) for _, ended in self.intervals]
        now = most = 0
        for _, change in sorted(ends):  # at the same moment an end comes first
            now += change
            most = max(most, now)
        return most


class Sender:
    """One caller: how many calls it made in each second."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()


class Recorded:
    """The counts; `window_s` is that of the breakers, whose ratio is over outcomes of so long."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self.calls = 0
        self.attempts = 0
        self.first_at = 0.0
        self.last_at = 0.0
        self.targets: Named[Target] = Named(Target)
        self.instances: Named[Runs] = Named(Runs)
        self.senders: Named[Sender] = Named(Sender)
        self.reached: Counter[int] = Counter()  # calls that came to their n-th attempt
        self.ended_well: Counter[int] = Counter()  # ... and ended with an answer at it
        self.would: Counter[str] = Counter()
        self.would_at: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by agent; as many as there are targets
        self.would_but_done: Counter[str] = Counter()  # the same, of calls that ended well all the same

    def add(self, spans: Iterable[Span]) -> None:
        """Count these."""
        for span in spans:
            if not self.calls + self.attempts:
                self.first_at = self.last_at = span.started_at
            self.first_at = min(self.first_at, span.started_at)
            self.last_at = max(self.last_at, span.started_at)
            if span.kind == "call":
                self._add_call(span)
            else:
                self._add_attempt(span)

    @property
    def period_s(self) -> float:
        """From the first span to the last."""
        return self.last_at - self.first_at

    @property
    def left_out(self) -> int:
        """Spans that were not counted for a name, because there were too many names."""
        return self.targets.left_out + self.instances.left_out + self.senders.left_out

    def _add_call(self, span: Span) -> None:
        self.calls += 1
        sender = self.senders.of(span.tenant, span.caller)
        if sender is not None:
            sender.calls[int(span.started_at)] += 1
        for number in range(1, min(span.attempts, 100) + 1):
            self.reached[number] += 1
        if span.attempts and span.status == "done":
            self.ended_well[span.attempts] += 1
        would = {note for note in span.notes if note.startswith(WOULD)}
        self.would.update(would)
        if would and (span.agent, span.task_type) in self.targets:
            self.would_at[span.agent].update(would)
        if span.status == "done":
            self.would_but_done.update(would)

    def _add_attempt(self, span: Span) -> None:
        self.attempts += 1
        began = span.started_at + span.queue_ms / 1000
        duration_ms = max(0.0, span.wait_ms - span.queue_ms)
        runs = self.instances.of(span.agent, span.instance)
        if runs is not None and len(runs.intervals) < SAMPLES_MAX:
            runs.intervals.append((began, began + duration_ms / 1000))
            runs.waits.append(span.queue_ms)
        target = self.targets.of(span.agent, span.task_type)
        if target is None:
            return
        target.longest_timeout_ms = max(target.longest_timeout_ms, span.timeout_ms or 0.0)
        if span.code in ANSWERS:
            if len(target.durations) < SAMPLES_MAX:
                target.durations.append(duration_ms)
        elif span.code == "deadline_exceeded" and span.sent:
            target.cut += 1
        self._judge(target, span)

    def _judge(self, target: Target, span: Span) -> None:
        if span.code and span.fault not in FAULTS:  # of a version that knew other words
            return
        error = Problem(code=span.code, fault=cast("Fault", span.fault), sent=span.sent) if span.code else None
        verdict = verdict_of(Outcome(error=error))
        window = int(span.started_at // self._window_s)
        if verdict in FAULTY:
            target.faults[window] += 1
        if verdict in FAULTY or verdict == "ok":
            target.outcomes[window] += 1


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest of these sorted values that this share of them does not exceed; there has to be one."""
    return values[min(int(len(values) * share), len(values) - 1)]
