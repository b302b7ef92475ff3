"""What units stand still for, beyond the calls that are awaited from their first moment: those say so themselves.

A signal is waited for from its `wait_for` on. What was begun without waiting (`ctx.start`, `ctx.first`) is waited for
while a `wait` names it; that is one wait for the first of all it names. It is over when the first of them ends, when
the process says `unwait`, and with the connection: whoever still waits says so again over the next one.

What the waits of a unit name is bounded, for each unit by itself: no other of its process can take its room. Beyond the
bound nobody could see what a unit waits for, so all that the new wait names is answered with `overloaded`.

While a unit stands still, it rests, and the wait graph knows for whom (`gateway/waits.py`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from agentgate.core.first_of import FirstOf
from agentgate.core.open_wait import OpenWait
from agentgate.model import problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentgate.core.signals import SignalWait, WaitId
    from agentgate.gateway.peers import Peer
    from agentgate.gateway.signals import Signals
    from agentgate.gateway.waits import UnitWaits
    from agentgate.model import Problem
    from agentgate.model.link import WaitParams
    from agentgate.ports.clock import Clock

K = TypeVar("K")
N = TypeVar("N")

# What one wait names, and all open waits of one unit: it makes 50 calls and 64 waits for signals, and may await each of
# them more than once.
ANY_OF_MAX: Final = 64
NAMED_MAX: Final = 256


_FULL: Final = problem("overloaded", detail=f"the unit waits for {NAMED_MAX} things at once, which is the bound")


class DeclaredWait(OpenWait, eq=False, kw_only=True):
    """A unit stands still until the first of these ends: calls and waits for signals, by their ids.

    A wait for a signal that is awaited at once names itself.
    """

    id: WaitId
    any_of: tuple[WaitId, ...]

    def release(self, problem: Problem) -> None:
        """All that it names comes to this outcome."""
        for part in self.parts:
            part.release(problem)


class Awaiting:
    """The declared waits of all processes."""

    def __init__(self, signals: Signals, waits: UnitWaits, clock: Clock) -> None:
        self._signals = signals
        self._waits = waits
        self._clock = clock
        signals.on_begin = self._signal_awaited
        signals.on_end = lambda wait: self.ended(wait.id)
        self._open: dict[str, dict[str, DeclaredWait]] = {}  # by process
        self._naming: dict[WaitId, dict[WaitId, DeclaredWait]] = {}  # by what is named
        self._named: Counter[str] = Counter()  # how much the waits of a unit name

    def open_waits(self) -> list[DeclaredWait]:
        """For display: what units stand still for."""
        return [wait for waits in self._open.values() for wait in waits.values()]

    def knows(self, peer: Peer, wait_id: str) -> bool:
        """Whether this process has an open wait of this id."""
        return wait_id in self._open.get(peer.instance, ())

    def wait(self, peer: Peer, params: WaitParams) -> None:
        """A unit stands still from now on, unless something of what it waits for has ended already."""
        if self.knows(peer, params.id) or not 0 < len(params.any_of) <= ANY_OF_MAX:
            return
        parts: dict[WaitId, OpenWait] = {}
        for named in params.any_of:
            part = self._part(peer, named)
            if part is None:  # it has ended
                return
            parts[peer.instance, named] = part
        units = {part.unit for part in parts.values()}
        if len(units) != 1:
            return
        if self._named[units.pop()] + len(parts) <= NAMED_MAX:
            self._begin((peer.instance, params.id), parts)
        else:
            for part in parts.values():
                part.release(_FULL)

    def unwait(self, peer: Peer, wait_id: str) -> None:
        """The unit goes on."""
        wait = self._open.get(peer.instance, {}).get(wait_id)
        if wait is not None:
            self._end(wait)

    def ended(self, named: WaitId) -> None:
        """A call or a wait for a signal has ended."""
        if named in self._naming:
            for wait in list(self._naming[named].values()):
                self._end(wait)

    def forget(self, peer: Peer) -> None:
        """The connection is a new one: what was said over the old one is said again, if it still holds."""
        for wait in list(self._open.get(peer.instance, {}).values()):
            if wait.id not in wait.any_of:
                self._end(wait)

    def _part(self, peer: Peer, named: str) -> OpenWait | None:
        """What one name stands for, as a wait of its own; None: nothing that a unit could still wait for."""
        running = peer.calls.get(named)
        if running is not None:
            return self._waits.of(running.passage) if running.passage.call.parent_unit else None
        wait = self._signals.book.get((peer.instance, named))
        return self._signals.open_wait(wait) if wait is not None and wait.outcome is None else None

    def _signal_awaited(self, wait: SignalWait) -> None:
        self._begin(wait.id, {wait.id: self._signals.open_wait(wait)})

    def _begin(self, wait_id: WaitId, any_of: Mapping[WaitId, OpenWait]) -> None:
        parts = tuple(any_of.values())
        only = len(parts) == 1
        wait = DeclaredWait(
            unit=parts[0].unit,
            kind=parts[0].kind if only else "first",
            aim=parts[0].aim if only else FirstOf([part.aim for part in parts]),
            certain=all(part.certain for part in parts),
            since=self._clock.now(),
            deadline=min(part.deadline for part in parts),
            target=_listed(part.target for part in parts),
            task_type=_listed(part.task_type for part in parts),
            business_key=_listed(part.business_key for part in parts),
            trace_id=parts[0].trace_id,
            span_id=parts[0].span_id,
            parts=parts,
            id=wait_id,
            any_of=tuple(any_of),
        )
        self._named[wait.unit] += len(parts)
        instance, name = wait_id
        self._open.setdefault(instance, {})[name] = wait
        for named in any_of:
            self._naming.setdefault(named, {})[wait_id] = wait
        self._waits.begin_checked(wait)

    def _end(self, wait: DeclaredWait) -> None:
        instance, name = wait.id
        _drop(self._open, instance, name)
        for named in wait.any_of:
            _drop(self._naming, named, wait.id)
        self._named[wait.unit] -= len(wait.parts)
        if not self._named[wait.unit]:
            del self._named[wait.unit]
        self._waits.close(wait)


def _listed(names: Iterable[str]) -> str:
    """Each once."""
    return ", ".join(filter(None, dict.fromkeys(names)))


def _drop(rows: dict[K, dict[N, DeclaredWait]], row: K, name: N) -> None:
    """Take an entry out, and its row with the last one."""
    del rows[row][name]
    if not rows[row]:
        del rows[row]
