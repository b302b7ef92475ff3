"""A link belongs to the process that made it: after a fork its threads are gone and its socket is shared."""

from __future__ import annotations

import os

from agentgate.errors import LinkDown


class Birthplace:
    """Remembers the process."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def check(self) -> None:
        """Raise `LinkDown` in any other process than the one this was made in."""
        if os.getpid() != self._pid:
            raise LinkDown(
                f"this link belongs to process {self._pid}, from which process {os.getpid()} was forked; "
                "open a Gate (or run the agent) in the new process instead"
            )
