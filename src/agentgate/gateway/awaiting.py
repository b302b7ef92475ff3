"""For which of the things it has begun a unit stands still: `wait` and `unwait` of the link.

A call that is awaited from its first moment says so itself. What was begun without (`ctx.start`, `ctx.first`) is not
waited for until a `wait` names it; that is one wait for the first of all it names. It is over when the first of them
ends, when the process says `unwait`, and with the connection: whoever still waits says so again over the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgate.core.signals import WaitId
    from agentgate.gateway.peers import Peer
    from agentgate.gateway.signals import Signals
    from agentgate.model.link import WaitParams

K = TypeVar("K")
N = TypeVar("N")

# Waits of one process that are open at once, and what one of them names: a unit makes 50 calls at most.
WAITS_MAX: Final = 1024
ANY_OF_MAX: Final = 64


class FirstOf(Struct, eq=False, kw_only=True):
    """A unit stands still until the first of these ends: calls and waits for signals, by their ids."""

    id: WaitId
    unit: str
    any_of: tuple[WaitId, ...]


class Awaiting:
    """The declared waits of all processes; `on_begin` and `on_end` hear of each."""

    def __init__(self, signals: Signals) -> None:
        self._book = signals.book
        signals.on_end = lambda wait: self.ended(wait.id)
        self._open: dict[str, dict[str, FirstOf]] = {}  # by process
        self._naming: dict[WaitId, dict[WaitId, FirstOf]] = {}  # by what is named
        self.on_begin: Callable[[FirstOf], None] = lambda _first: None
        self.on_end: Callable[[FirstOf], None] = lambda _first: None

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
        first = FirstOf(id=(peer.instance, params.id), unit=unit, any_of=named)
        self._open.setdefault(peer.instance, {})[params.id] = first
        for one in named:
            self._naming.setdefault(one, {})[first.id] = first
        self.on_begin(first)

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
        """The connection is a new one, or the process is gone."""
        for first in list(self._open.get(peer.instance, {}).values()):
            self._end(first)

    def _unit_of(self, peer: Peer, named: str) -> str:
        running = peer.calls.get(named)
        if running is not None:
            return running.passage.call.parent_unit
        wait = self._book.get((peer.instance, named))
        return wait.unit if wait is not None and wait.outcome is None else ""

    def _end(self, first: FirstOf) -> None:
        instance, wait_id = first.id
        _drop(self._open, instance, wait_id)
        for named in set(first.any_of):
            _drop(self._naming, named, first.id)
        self.on_end(first)


def _drop(rows: dict[K, dict[N, FirstOf]], row: K, name: N) -> None:
    """Take an entry out, and its row with the last one."""
    del rows[row][name]
    if not rows[row]:
        del rows[row]
