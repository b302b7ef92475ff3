"""What units of this process stand still for, beyond the calls that say so themselves; said again over a new link."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agentgate.model.link import UnwaitParams, WaitParams
from agentgate.sdk import wire


class OpenWaits:
    """The open waits of a link for what it has begun before. `send` hands on a message, if there is a connection."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._waits: dict[str, WaitParams] = {}

    def begin(self, wait_id: str, any_of: Sequence[str]) -> None:
        """A unit waits for the first of these."""
        wait = self._waits[wait_id] = WaitParams(id=wait_id, any_of=tuple(any_of))
        self._send(wire.notification("wait", wait))

    def end(self, wait_id: str, *, tell: bool) -> None:
        """It waits no longer; the gate knows already if one of them has ended, else `tell` it."""
        if self._waits.pop(wait_id, None) is not None and tell:
            self._send(wire.notification("unwait", UnwaitParams(id=wait_id)))

    def messages(self) -> list[bytes]:
        """All of them, to be sent again; what they name has to be sent before."""
        return [wire.notification("wait", wait) for wait in self._waits.values()]
