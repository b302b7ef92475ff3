"""What a call waits for, told from how far it has come.

Nothing is kept for it: a passage knows whether it queues, joins or has a unit, and the graph asks when it looks. So a
wait is opened once and never has to be pointed anew, and a call that nobody asks about pays nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentgate.core.open_wait import Group
    from agentgate.core.slots import Slots
    from agentgate.gateway.flights import Flight
    from agentgate.gateway.passage import Passage
    from agentgate.model import WaitKind


class CallAim:
    """The aim of one call's wait."""

    __slots__ = ("_passage", "_slots")

    def __init__(self, passage: Passage, slots: Slots) -> None:
        self._passage = passage
        self._slots = slots

    def groups(self) -> Sequence[Group]:
        """Who has to come before the call goes on."""
        return call_groups(self._passage, self._slots)


def call_kind(passage: Passage, slots: Slots) -> WaitKind:
    """How it waits, as of now; a call for which only time has to pass counts as one that is under way."""
    if passage.joined is not None:
        return "join"
    if passage.is_queued:
        return "slot" if slots.key_holder(passage.call) is None else "exclusive"
    return "call"


def call_groups(passage: Passage, slots: Slots) -> Sequence[Group]:
    """A slot of its target and its exclusive key while it queues, then its unit; what only time brings is outside."""
    if passage.joined is not None:
        return _flight_groups(passage.joined, slots)
    if passage.is_queued:
        holder = slots.key_holder(passage.call)
        pool: Group = (slots.pool(passage.call.agent),)
        return (pool,) if holder is None else (pool, (holder,))
    if passage.unit is None:  # paced, cooling, backing off, or asking the ledger
        return ()
    return (tuple(unit.id for unit in passage.live_units),)


def _flight_groups(flight: Flight, slots: Slots) -> Sequence[Group]:
    """Whoever joined waits for what its owner waits for, or for the units that the owner has left."""
    if flight.units:
        return (tuple(sorted(unit.id for unit in flight.units)),)
    return call_groups(flight.owner, slots) if flight.owner is not None else ()
