"""The units that are open: who runs them, what they hold, and what happens at their end.

A unit holds a slot, a token in the chain guard, and (for a keyed call) an open record. All of it is given back here
and only here, at the unit's one end, whatever the end is: an answer, a loss, or the news that it never began. Callers
wait for `unit.answer`, which comes true after the ledger has the answer on disk; they may leave, the unit goes on. A
unit that does not get on is given up before its end: its callers are answered, and it keeps its record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol

import structlog
from msgspec import Struct, field

from agentgate.core.table import step
from agentgate.core.unit_life import HOLDS_SLOT, TABLE, UnitEvent, UnitState
from agentgate.gateway.flights import RECHECK
from agentgate.model import Call, Change, Changed, LedgerEvent, Outcome, failure, plain
from agentgate.model.link import StopKind, UnitHealth
from agentgate.runtime.later import Later

log = structlog.get_logger(__name__)

if TYPE_CHECKING:
    from agentgate.core.chain import ChainGuard
    from agentgate.core.slots import SlotTicket
    from agentgate.core.timeout import TimeoutPlan, Timeouts
    from agentgate.gateway.counters import Counters
    from agentgate.gateway.flights import Flight
    from agentgate.gateway.ledger import Ledger
    from agentgate.gateway.options import CallOptions
    from agentgate.ports.clock import Clock

# What an answer's error means to the ledger; an error that is not named here is final.
FREES_KEY: frozenset[str] = frozenset({"overloaded", "rate_limited"})


class Unit(Struct, eq=False):
    """One execution of a handler.

    `answer` comes true exactly once, after everything it changes is on disk, or when the unit is given up.
    """

    id: str
    call: Call
    instance: str
    flight: Flight | None  # of its key; None: a read
    span_id: str = ""
    output_schema: dict[str, Any] | None = None
    promises: tuple[str, ...] = ()  # the signals that it has promised to send
    state: UnitState = "claiming"
    answer: Later[Outcome] = field(default_factory=Later)
    epoch: int = 0  # of its record
    sent: bool = False
    slot: SlotTicket | None = None
    plan: TimeoutPlan | None = None
    token: str = ""
    started_at: float = 0.0
    moved_at: float = 0.0  # it showed progress, as long as it is not late
    effects: int = 0  # writes that it has called for and that were done
    spent: float = 0.0  # the cost of its calls
    was_victim: bool = False  # it gave way so that others get on
    rests: bool = False  # while it waits, its slot is free
    cut: bool = False  # its attempt timed out; a late answer replaces the censored sample
    handler_ms: float | None = None
    notes: list[str] = field(default_factory=list)
    restored: bool = False  # taken over from the gateway before this one; its process has not come back yet
    was_restored: bool = False  # the same, and its process may be back
    health: UnitHealth | Literal[""] = ""  # as its process said, when it was late
    on_disk: tuple[Callable[[], None], ...] = ()  # who is told when its end is
    stop_kind: StopKind | None = None
    stood_in_for: bool = False  # its process is asked for another answer: not to start anew before it has said it
    final: bool = False  # it has ended, and no other attempt of its call follows
    timer: asyncio.TimerHandle | None = None

    @property
    def keyed(self) -> bool:
        """Whether the ledger has a record of it."""
        return self.flight is not None

    @property
    def ended(self) -> bool:
        """Whether its end is known (its answer may still be on the way to the disk)."""
        return self.state == "ended"

    def move(self, event: UnitEvent) -> None:
        """One step along the table of its life."""
        self.state = step(TABLE, self.state, event)


class UnitListener(Protocol):
    """Hears what becomes of units that run; whatever a unit has taken meanwhile goes with it."""

    def unit_opened(self, unit: Unit) -> None:
        """It runs from now on, or its process is back and says that it still does."""
        ...

    def unit_ended(self, unit: Unit) -> None:
        """Its end is known, whatever that is; `unit.final` says whether it is the last word."""
        ...

    def unit_overstays(self, unit: Unit) -> None:
        """It was told to stop and did not."""
        ...


class Units:
    """All open units of this gateway."""

    def __init__(  # noqa: PLR0913 - everything a unit's end touches, handed in by name
        self,
        *,
        release: Callable[[SlotTicket, Outcome], None],
        overstay: Callable[[SlotTicket], None],
        send_stop: Callable[[Unit, StopKind, str], None],
        zombies_found: Callable[[str, int], None],
        guard: ChainGuard,
        timeouts: Timeouts,
        ledger: Ledger,
        clock: Clock,
        counters: Counters,
        options: CallOptions,
        answers_early: bool = False,
    ) -> None:
        self._answers_early = answers_early  # the ledger is only observed: no answer waits until it is on disk
        self._release = release
        self._overstay_slot = overstay
        self._guard = guard
        self._timeouts = timeouts
        self._ledger = ledger
        self._clock = clock
        self._counters = counters
        self._options = options
        self._open: dict[str, Unit] = {}
        self._by_instance: dict[str, dict[str, Unit]] = {}
        self.send_stop = send_stop
        self._zombies_found = zombies_found
        self._listeners: list[UnitListener] = []

    def __len__(self) -> int:
        return len(self._open)

    def listen(self, listener: UnitListener) -> None:
        """Tell this listener from now on."""
        self._listeners.append(listener)

    def get(self, unit_id: str) -> Unit | None:
        """An open unit; one whose end is being written counts as open."""
        return self._open.get(unit_id)

    def of_instance(self, instance: str) -> list[Unit]:
        """The open units of one process."""
        return list(self._by_instance.get(instance, {}).values())

    def add(self, unit: Unit) -> None:
        """Know a unit from now on, and bind it to its flight."""
        self._open[unit.id] = unit
        self._by_instance.setdefault(unit.instance, {})[unit.id] = unit
        if unit.flight is not None:
            unit.flight.unit_started(unit)

    def grant(self, unit: Unit, slot: SlotTicket | None, epoch: int) -> None:
        """It may run: the unit takes over the slot, opens in the chain guard, and keeps its deadline in view."""
        unit.move("granted")
        self._take_over(unit, slot)
        unit.epoch = epoch
        unit.started_at = unit.moved_at = self._clock.now()
        self._open_for_calls(unit)
        if unit.keyed:
            self._set_timer(unit, unit.call.deadline, self._expire)

    def restore(self, unit: Unit) -> None:
        """Know a unit that an earlier gateway, or this one before it lost sight of it, has granted."""
        self.add(unit)
        unit.move("granted")
        self._take_over(unit, unit.slot)
        unit.restored = unit.was_restored = True

    def running(self) -> Iterator[Unit]:
        """The units that a process may be at work on; the map must not change meanwhile."""
        return (unit for unit in self._open.values() if unit.sent and not unit.ended and not unit.restored)

    def restored(self) -> list[Unit]:
        """The units whose process has not come back yet."""
        return [unit for unit in self._open.values() if unit.restored and not unit.ended]

    def resume(self, unit: Unit, slot: SlotTicket) -> None:
        """The process of a restored unit is back and still runs it: it holds a slot and a token again."""
        unit.restored = False
        self._take_over(unit, slot)
        unit.started_at = unit.moved_at = self._clock.now()
        self._open_for_calls(unit)
        self._set_timer(unit, unit.call.deadline, self._expire)

    def stop(self, unit: Unit, kind: StopKind, reason: str) -> None:
        """Tell a unit to stop; it becomes a zombie unless it ends within the grace time."""
        if unit.state not in HOLDS_SLOT or unit.stop_kind in ("cancel", kind):
            return
        unit.stop_kind = kind
        unit.move("stop")
        self._set_timer(unit, self._clock.now() + self._options.stop_grace_s, self._overstay)
        self.send_stop(unit, kind, reason)

    def answered(self, unit: Unit, event: LedgerEvent, outcome: Outcome, on_disk: Callable[[], None]) -> None:
        """Its process says what it came to; `on_disk` is called when that is settled."""
        unit.on_disk += (on_disk,)
        if not unit.ended:
            self._sample(unit, outcome)
            self._end(unit, event, outcome)

    def lost(self, unit: Unit) -> None:
        """Its process is gone and nobody can tell what it did."""
        if not unit.ended:
            self._counters.lost_units += 1
            detail = f"instance {plain(unit.instance)} is gone"
            self._end(unit, "lost", failure("agent_lost", sent=unit.sent, detail=detail))

    def give_up(self, unit: Unit, outcome: Outcome) -> None:
        """Whoever waits for it gets this; it goes on, and its own answer still settles its key."""
        unit.stood_in_for = False
        self._count_zombies(unit.instance)
        if not unit.answer.done():
            unit.answer.set_result(outcome)
        if unit.flight is not None:
            unit.flight.release(outcome)

    def discard(self, unit: Unit) -> None:
        """Its claim was refused: there is nothing to give back and nothing to write."""
        unit.move("end")
        self._conclude(unit, failure("in_progress"), None)

    def unsent(self, unit: Unit, outcome: Outcome) -> None:
        """It never reached its process: the key is free again."""
        if not unit.ended:
            self._end(unit, "not_sent", outcome)

    def close(self) -> None:
        """Stop all timers; the records stay as they are, for the next start."""
        for unit in self._open.values():
            self._clear_timer(unit)

    def _end(self, unit: Unit, event: LedgerEvent, outcome: Outcome) -> None:
        # A failed read is run again, and so is whatever is known not to have happened.
        unit.final = event == "done" or (event == "failed" and unit.keyed)
        self._give_back(unit, outcome)
        self._close(unit)
        unit.move("end")
        if unit.flight is None:
            self._conclude(unit, outcome, None)
            return
        change = Change(key=unit.flight.key, epoch=unit.epoch, unit=unit.id, event=event, outcome=outcome)
        done = self._ledger.report(change)
        if self._answers_early and event in ("done", "failed") and not unit.answer.done():
            unit.answer.set_result(outcome)
        done.then(lambda written: self._written(unit, event, outcome, written))

    def _written(self, unit: Unit, event: LedgerEvent, outcome: Outcome, written: Later[Changed]) -> None:
        if written.cancelled():  # the gate is closing; the next one asks the instance again
            return
        record = written.result().record
        if record is not None and record.outcome is not None:
            # The record is settled, by this answer or by an earlier one of the same epoch: that is the truth.
            self._conclude(unit, record.outcome, record.outcome)
        elif event in ("done", "failed"):
            # The record is gone or of another run: the answer counts for nobody.
            self._conclude(unit, outcome, RECHECK)
        else:
            self._conclude(unit, outcome, RECHECK if event == "lost" and not unit.call.repeatable else None)

    def _conclude(self, unit: Unit, outcome: Outcome, flight_answer: object) -> None:
        self._open.pop(unit.id, None)
        units = self._by_instance.get(unit.instance)
        if units is not None:
            units.pop(unit.id, None)
            if not units:
                del self._by_instance[unit.instance]
        if not unit.answer.done():
            unit.answer.set_result(outcome)
        if unit.flight is not None:
            unit.flight.unit_ended(unit, flight_answer)  # type: ignore[arg-type]  # an outcome, RECHECK or None
        for tell in unit.on_disk:
            tell()

    def _take_over(self, unit: Unit, slot: SlotTicket | None) -> None:
        unit.slot = slot
        if slot is not None:
            slot.unit = unit.id

    def _give_back(self, unit: Unit, outcome: Outcome) -> None:
        self._clear_timer(unit)
        if unit.slot is not None:
            slot, unit.slot = unit.slot, None
            self._release(slot, outcome)

    def _open_for_calls(self, unit: Unit) -> None:
        """From now on its token holds: calls, waits and signals may be made in it."""
        self._guard.open_unit(unit.id, unit.call, instance=unit.instance, span_id=unit.span_id, epoch=unit.epoch)
        self._tell(unit, lambda listener: listener.unit_opened(unit))

    def _close(self, unit: Unit) -> None:
        """It begins nothing more, and nobody waits for what it waits for."""
        self._guard.close_unit(unit.id)
        self._tell(unit, lambda listener: listener.unit_ended(unit))

    def _tell(self, unit: Unit, tell: Callable[[UnitListener], None]) -> None:
        """Tell all of them: an error of one is a flaw of it, and concerns neither the unit nor the others."""
        for listener in self._listeners:
            try:
                tell(listener)
            except Exception:
                log.exception("unit_listener_failed", unit=unit.id, listener=type(listener).__name__)

    def _expire(self, unit: Unit) -> None:
        self.stop(unit, "expire", "its deadline has passed")

    def _overstay(self, unit: Unit) -> None:
        if unit.state != "told":
            return
        unit.move("overstay")
        self._counters.zombies += 1
        self._clear_timer(unit)
        if unit.slot is not None:
            self._overstay_slot(unit.slot)
        self._guard.close_unit(unit.id)
        self._tell(unit, lambda listener: listener.unit_overstays(unit))
        self._count_zombies(unit.instance)

    def _count_zombies(self, instance: str) -> None:
        units = self.of_instance(instance)
        zombies = sum(1 for unit in units if unit.state == "zombie" and not unit.stood_in_for)
        self._zombies_found(instance, zombies)

    def _sample(self, unit: Unit, outcome: Outcome) -> None:
        """Teach the time-out how long an answer takes; refusals and raised errors say nothing about that."""
        if unit.plan is None or not (outcome.ok or outcome.code in ("rejected", "malformed_output")):
            return
        duration_s = self._clock.now() - unit.started_at
        if unit.cut:
            self._counters.late_answers += 1
            self._timeouts.late(unit.plan, duration_s)
        else:
            self._timeouts.answered(unit.plan, duration_s)

    def _set_timer(self, unit: Unit, at: float, what: Callable[[Unit], None]) -> None:
        self._clear_timer(unit)
        unit.timer = asyncio.get_running_loop().call_at(at, what, unit)

    def _clear_timer(self, unit: Unit) -> None:
        if unit.timer is not None:
            unit.timer.cancel()
            unit.timer = None
