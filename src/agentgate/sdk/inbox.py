"""Which units this process has seen, which of them run, and which answers it has to keep.

What it decides: for every `invoke`, whether a handler starts; for every `stop`, whom it concerns; for every answer,
how long it is kept. It is pure and synchronous; the link asks it before anything reaches a handler.

Rules (DESIGN 4.1, 4.2, 4.5):

- **A unit starts at most once.** A doubled `invoke` is dropped; when its answer is still kept, that is sent again.
  Units that have ended, were refused or were reported as unseen stay known for a while: a late copy starts nothing.
- **Of a write that is not repeatable, at most one run per key is alive in this process.** The gate may ask for a key
  again while an earlier run of it still works: that run was given up (its instance counted as lost, a check or an
  operator freed the key), but a handler cannot always be interrupted. The new unit then joins the old run and gets its
  answer. If the old run ends because it was told to, it says nothing about the new unit, which is answered "not sent":
  the gate, as the one owner of retries, may ask again. A finished run whose good answer nobody has acknowledged is
  joined in the same way. A failed one is not: asking again is how a failure is repeated.
- A unit that the gate keeps no record of (`unrecorded`) joins nothing and is joined by nothing.
- Joining needs the same key, task type and body. The key as shown does not name the target as the caller named it, so
  equal keys with different bodies are different work.
- **A run is told to stop when all its units are**, and as strongly as the mildest of them says.
- **Every answer to a keyed unit is kept** until a cumulative `ack` covers its number, reported by every `hello`, and
  sent again when it stays unacknowledged. The answer to a read is kept only while there is no connection for it.
- **At the bound nothing is forgotten: new work is refused**, as not sent. So is everything once the process drains.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from agentgate.model.link import Answer, InvokeParams, StopKind, UnitHealth, UnitReport
from agentgate.sdk.answers import not_sent

UNITS_MAX: Final = 1024  # at least: eight handlers at once, and the answers of seconds of a slow disk
OPEN_FACTOR: Final = 8  # units that are open at once, waiting ones included, are at most so many times those that run
CLOSED_MAX: Final = 8192  # at 1 000 units/s a late copy is recognised for 8 s, above the silence that ends a link
REPORT_BYTES_MAX: Final = 131_072  # answers inside one hello; larger ones follow as messages of their own

T = TypeVar("T")

Receipt: TypeAlias = Literal["start", "known"] | Answer


class Tell(NamedTuple):
    """The run to be told, by the unit it was started for, and how."""

    unit: str
    kind: StopKind


class Waiter:
    """One unit that waits for a run's answer."""

    __slots__ = ("deadline", "params", "told")

    def __init__(self, params: InvokeParams, deadline: float) -> None:
        self.params = params
        self.deadline = deadline
        self.told: StopKind | None = None


class Run:
    """One execution of a handler, and the units that wait for its answer."""

    __slots__ = ("params", "told", "unit", "waiters")

    def __init__(self, unit: str, params: InvokeParams) -> None:
        self.unit = unit  # the one it was started for, and by which the handlers know it
        self.params = params
        self.waiters: dict[str, Waiter] = {}  # by unit; empty: nobody wants the answer any more
        self.told: StopKind | None = None  # what the handler has been told


class Kept:
    """An answer that has to reach the gate."""

    __slots__ = ("answer", "params", "sent_at")

    def __init__(self, answer: Answer, params: InvokeParams) -> None:
        self.answer = answer
        self.params = params
        self.sent_at: float | None = None  # when it was last handed to a connection


def units_max(concurrency: int) -> int:
    """How many units and unacknowledged answers a process holds: what may be open at once, twice over."""
    return max(UNITS_MAX, 2 * OPEN_FACTOR * concurrency)


class Inbox:
    """Units by id and by key."""

    def __init__(self, *, units_max: int = UNITS_MAX, closed_max: int = CLOSED_MAX) -> None:
        self._units_max = units_max
        self._closed_max = closed_max
        self._runs: dict[str, Run] = {}  # by the unit a run was started for
        self._run_of_unit: dict[str, Run] = {}
        self._runs_of_key: dict[str, list[Run]] = {}  # writes that are not repeatable
        self._kept: OrderedDict[str, Kept] = OrderedDict()  # keyed ones in the order of their numbers
        self._done_of_key: dict[str, list[str]] = {}  # units of kept good answers
        self._reported: tuple[str, ...] = ()
        self._closed: OrderedDict[str, None] = OrderedDict()
        self._last_seq = 0
        self.draining = False

    @property
    def running(self) -> int:
        """How many handlers run."""
        return len(self._runs)

    @property
    def kept(self) -> int:
        """How many answers are kept."""
        return len(self._kept)

    @property
    def idle(self) -> bool:
        """Whether nothing is in hand: no handler runs, no answer waits for the gate."""
        return not self._runs and not self._kept

    def health(self, unit: str, is_at_work: Callable[[str], bool]) -> UnitHealth:
        """How a unit is; `is_at_work` says whether a run's handler is, by the unit it was started for."""
        run = self._run_of_unit.get(unit)
        if run is None:
            return "unknown"
        return "running" if is_at_work(run.unit) else "waiting"

    # What the gate asks.

    def receive(self, unit: str, params: InvokeParams, *, deadline: float, repeatable: bool) -> Receipt:
        """A unit arrives: start it, do nothing (it is known, or has joined a run), or send this answer at once."""
        if (kept := self._kept.get(unit)) is not None:
            return kept.answer
        if unit in self._run_of_unit or unit in self._closed:
            return "known"
        if max(len(self._runs), len(self._run_of_unit)) + len(self._kept) >= self._units_max:
            return self._refuse(unit, f"this instance already holds {self._units_max} units and unacknowledged answers")
        single = _is_keyed(params) and not repeatable and not params.unrecorded
        if single and (joined := self._join(unit, params, deadline)) is not None:
            return joined
        if self.draining:
            return self._refuse(unit, "this instance is leaving")
        run = self._runs[unit] = Run(unit, params)
        self._wait(unit, run, params, deadline)
        if single:
            self._runs_of_key.setdefault(params.key, []).append(run)
        return "start"

    def stop(self, unit: str, kind: StopKind) -> Tell | Answer | None:
        """A unit is told to stop: whom to tell, or what to answer, or nothing."""
        if (kept := self._kept.get(unit)) is not None:
            return kept.answer
        if (run := self._run_of_unit.get(unit)) is not None:
            waiter = run.waiters[unit]
            waiter.told = "cancel" if waiter.told == "cancel" else kind
            return self._tell(run)
        if unit in self._closed:
            return None
        self._close(unit)
        return Answer(unseen=True)

    def forget(self, unit: str) -> Tell | None:
        """The gate takes no answer from this unit any more: stop it, and drop what it answers."""
        self._drop_kept(unit)
        run = self._run_of_unit.pop(unit, None)
        self._close(unit)
        if run is None:
            return None
        del run.waiters[unit]
        return self._tell(run)

    def ack(self, seq: int) -> None:
        """Every keyed answer up to this number is on disk."""
        within = itertools.takewhile(lambda item: item[1].answer.seq <= seq, self._kept.items())
        for unit in [unit for unit, kept in within if kept.answer.seq]:
            self._drop_kept(unit)

    # What the handlers report.

    def finish(self, unit: str, answer: Answer) -> list[str]:
        """The run started for this unit ended; returns the units that have an answer now."""
        run = self._runs.pop(unit, None)
        if run is None:
            return []
        _remove(self._runs_of_key, run.params.key, run)
        stopped = answer.error is not None and answer.error.code == "cancelled"
        for waiting, waiter in run.waiters.items():
            del self._run_of_unit[waiting]
            fits = waiting == unit or not stopped or waiter.told is not None
            self._keep(waiting, answer if fits else not_sent("an earlier run of this key was stopped"), waiter.params)
        return list(run.waiters)

    # What the link does with answers.

    def to_send(self, now: float, again_after_s: float) -> list[tuple[str, Answer]]:
        """Answers that were never handed to a connection, or so long ago that they may have been lost."""
        return [
            (unit, kept.answer)
            for unit, kept in self._kept.items()
            if kept.sent_at is None or kept.sent_at + again_after_s <= now
        ]

    def answer_of(self, unit: str) -> Answer | None:
        """The kept answer of a unit."""
        kept = self._kept.get(unit)
        return None if kept is None else kept.answer

    def sent(self, unit: str, now: float) -> None:
        """The answer of this unit was handed to a connection."""
        kept = self._kept.get(unit)
        if kept is None:
            return
        if kept.answer.seq:
            kept.sent_at = now
        else:
            self._drop_kept(unit)

    def reports(self, now: float, bytes_max: int = REPORT_BYTES_MAX) -> tuple[UnitReport, ...]:
        """What a hello has to say. An answer that does not fit is reported as running, and sent after the welcome."""
        reports = [
            UnitReport(
                unit=unit,
                key=waiter.params.key,
                token=waiter.params.token,
                remaining_ms=max(0, round((waiter.deadline - now) * 1000)),
            )
            for run in self._runs.values()
            for unit, waiter in run.waiters.items()
        ]
        reported = []
        for unit, kept in self._kept.items():
            bytes_max -= _weight(kept.answer)
            if bytes_max >= 0:
                reported.append(unit)
            answer = kept.answer if bytes_max >= 0 else None
            reports.append(UnitReport(unit=unit, key=kept.params.key, token=kept.params.token, answer=answer))
        self._reported = tuple(reported)
        return tuple(reports)

    def welcomed(self, now: float) -> None:
        """The gate has read the last hello: the answers in it count as sent."""
        for unit in self._reported:
            self.sent(unit, now)
        self._reported = ()

    # The parts.

    def _join(self, unit: str, params: InvokeParams, deadline: float) -> Receipt | None:
        for run in self._runs_of_key.get(params.key, ()):
            if _is_same_work(run.params, params):
                self._wait(unit, run, params, deadline)
                return "known"
        for earlier in self._done_of_key.get(params.key, ()):
            done = self._kept[earlier]
            if _is_same_work(done.params, params):
                return self._keep(unit, done.answer, params)
        return None

    def _wait(self, unit: str, run: Run, params: InvokeParams, deadline: float) -> None:
        run.waiters[unit] = Waiter(params, deadline)
        self._run_of_unit[unit] = run

    def _keep(self, unit: str, answer: Answer, params: InvokeParams) -> Answer:
        if _is_keyed(params):
            self._last_seq += 1
            answer = msgspec.structs.replace(answer, seq=self._last_seq)
            if answer.error is None and not params.unrecorded:
                self._done_of_key.setdefault(params.key, []).append(unit)
        self._kept[unit] = Kept(answer, params)
        return answer

    def _drop_kept(self, unit: str) -> None:
        kept = self._kept.pop(unit, None)
        if kept is not None:
            _remove(self._done_of_key, kept.params.key, unit)
            self._close(unit)

    def _tell(self, run: Run) -> Tell | None:
        """Tell the run what all its units have been told, unless it knows."""
        kinds = {waiter.told for waiter in run.waiters.values()}
        if None in kinds or run.told == "cancel":
            return None
        kind: StopKind = "expire" if "expire" in kinds else "cancel"
        if run.told == kind:
            return None
        run.told = kind
        return Tell(run.unit, kind)

    def _refuse(self, unit: str, why: str) -> Answer:
        self._close(unit)
        return not_sent(why)

    def _close(self, unit: str) -> None:
        self._closed[unit] = None
        self._closed.move_to_end(unit)
        if len(self._closed) > self._closed_max:
            self._closed.popitem(last=False)


def _is_keyed(params: InvokeParams) -> bool:
    return params.effect == "write"


def _is_same_work(one: InvokeParams, other: InvokeParams) -> bool:
    """Same task type, same body: 1, 1.0 and "1" differ, the order of keys does not."""
    return one.task_type == other.task_type and _canonical(one) == _canonical(other)


def _canonical(params: InvokeParams) -> bytes:
    return msgspec.json.encode(params.payload, order="deterministic")


def _weight(answer: Answer) -> int:
    return len(msgspec.json.encode(answer))


def _remove(lists: dict[str, list[T]], key: str, item: T) -> None:
    found = lists.get(key)
    if found is None:
        return
    if found == [item]:
        del lists[key]
    elif item in found:
        found.remove(item)
