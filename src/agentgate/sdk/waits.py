"""What units of this process stand still for, beyond the calls that say so themselves; said again over a new link."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from agentgate.model.link import UnwaitParams, WaitParams


class OpenWaits:
    """The open waits of a link for what it has begun before. `notify` tells the gate, if there is a connection."""

    def __init__(self, notify: Callable[[str, msgspec.Struct], None]) -> None:
        self._notify = notify
        self._waits: dict[str, WaitParams] = {}

    def begin(self, wait_id: str, any_of: Sequence[str]) -> None:
        """A unit waits for the first of these."""
        wait = self._waits[wait_id] = WaitParams(id=wait_id, any_of=tuple(any_of))
        self._notify("wait", wait)

    def end(self, wait_id: str, *, tell: bool) -> None:
        """It waits no longer; the gate knows already if one of them has ended, else `tell` it."""
        if self._waits.pop(wait_id, None) is not None and tell:
            self._notify("unwait", UnwaitParams(id=wait_id))

    def link_up(self) -> None:
        """Say all of them again; what they name has been sent before."""
        for wait in self._waits.values():
            self._notify("wait", wait)
