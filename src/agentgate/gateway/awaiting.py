"""What units stand still for, beyond the calls that are awaited from their first moment: those say so themselves.

A signal is waited for from its `wait_for` on. What was begun without waiting (`ctx.start`, `ctx.first`) is waited for
while a `wait` names it; that is one wait for the first of all it names. It is over when the first of them ends, when
the process says `unwait`, and with the connection: whoever still waits says so again over the next one.

While a unit stands still, it rests (`gateway/resting.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from agentgate.core.signals import SignalWait, WaitId
    from agentgate.gateway.peers import Peer
    from agentgate.gateway.resting import Resting
    from agentgate.gateway.signals import Signals
    from agentgate.model.link import WaitParams

K = TypeVar("K")
N = TypeVar("N")

# Waits of one process that are open at once, and what one of them names: a unit makes 50 calls at most.
WAITS_MAX: Final = 1024
ANY_OF_MAX: Final = 64


class FirstOf(Struct, eq=False, kw_only=True):
    """A unit stands still until the first of these ends: calls and waits for signals, by their ids.

    A wait for a signal that is awaited at once names itself.
    """

    id: WaitId
    unit: str
    any_of: tuple[WaitId, ...]


class Awaiting:
    """The declared waits of all processes."""

    def __init__(self, signals: Signals, resting: Resting) -> None:
        self._book = signals.book
        self._resting = resting
        signals.on_begin = self._signal_awaited
        signals.on_end = lambda wait: self.ended(wait.id)
        self._open: dict[str, dict[str, FirstOf]] = {}  # by process
        self._naming: dict[WaitId, dict[WaitId, FirstOf]] = {}  # by what is named

    def open_waits(self) -> list[FirstOf]:
        """For display: what units stand still for."""
        return [first for waits in self._open.values() for first in waits.values()]

    def wait(self, peer: Peer, params: WaitParams) -> None:
        """A unit stands still from now on, unless something of what it waits for has ended already."""
        waits = self._open.get(peer.instance, {})
        if params.id in waits or len(waits) >= WAITS_MAX or not 0 < len(params.any_of) <= ANY_OF_MAX:
            return
        units = {self._unit_of(peer, named) for named in params.any_of}
        unit = units.pop()
        if units or not unit:  # one has ended, or they are not of one unit
            return
        named = tuple((peer.instance, name) for name in params.any_of)
        self._begin(FirstOf(id=(peer.instance, params.id), unit=unit, any_of=named))

    def unwait(self, peer: Peer, wait_id: str) -> None:
        """The unit goes on."""
        first = self._open.get(peer.instance, {}).get(wait_id)
        if first is not None:
            self._end(first)

    def ended(self, named: WaitId) -> None:
        """A call or a wait for a signal has ended."""
        if named in self._naming:
            for first in list(self._naming[named].values()):
                self._end(first)

    def forget(self, peer: Peer) -> None:
        """The connection is a new one: what was said over the old one is said again, if it still holds."""
        for first in list(self._open.get(peer.instance, {}).values()):
            if first.id not in first.any_of:
                self._end(first)

    def _unit_of(self, peer: Peer, named: str) -> str:
        running = peer.calls.get(named)
        if running is not None:
            return running.passage.call.parent_unit
        wait = self._book.get((peer.instance, named))
        return wait.unit if wait is not None and wait.outcome is None else ""

    def _signal_awaited(self, wait: SignalWait) -> None:
        self._begin(FirstOf(id=wait.id, unit=wait.unit, any_of=(wait.id,)))

    def _begin(self, first: FirstOf) -> None:
        instance, wait_id = first.id
        self._open.setdefault(instance, {})[wait_id] = first
        for named in first.any_of:
            self._naming.setdefault(named, {})[first.id] = first
        self._resting.began(first.unit)

    def _end(self, first: FirstOf) -> None:
        instance, wait_id = first.id
        _drop(self._open, instance, wait_id)
        for named in set(first.any_of):
            _drop(self._naming, named, first.id)
        self._resting.ended(first.unit)


def _drop(rows: dict[K, dict[N, FirstOf]], row: K, name: N) -> None:
    """Take an entry out, and its row with the last one."""
    del rows[row][name]
    if not rows[row]:
        del rows[row]
