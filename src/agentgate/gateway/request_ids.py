"""What the ids of one process stand for: each for one request of one kind, as long as the gate knows it.

Every kind of request is kept where it is dealt with, under its id. What is said later by the id alone (`cancel`, the
names of a `wait`, the end of one of them) finds the right one only because no other kind has it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from agentgate.core.locks import Locks
    from agentgate.core.signals import SignalBook
    from agentgate.gateway.awaiting import Awaiting
    from agentgate.gateway.peers import Peer

RequestKind: TypeAlias = Literal["call", "lock", "wait_for", "signal", "wait"]


class RequestIds:
    """Asks those who keep requests."""

    def __init__(self, locks: Locks, book: SignalBook, awaiting: Awaiting) -> None:
        self._locks = locks
        self._book = book
        self._awaiting = awaiting

    def other_kind(self, peer: Peer, request_id: str, kind: RequestKind) -> RequestKind | None:
        """The kind of the request that has this id, if it is another than this one."""
        known = self._kind_of(peer, request_id)
        return known if known != kind else None

    def _kind_of(self, peer: Peer, request_id: str) -> RequestKind | None:
        if request_id in peer.calls:
            return "call"
        if self._locks.get(peer.instance, request_id) is not None:
            return "lock"
        if self._book.get((peer.instance, request_id)) is not None:  # before `wait`: an awaited one is both
            return "wait_for"
        if self._book.knows(peer.instance, request_id):
            return "signal"
        return "wait" if self._awaiting.knows(peer, request_id) else None
