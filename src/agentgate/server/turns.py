"""How much the links begin in one turn of the event loop.

A turn that handled whatever has come would last as long as all of it takes, tens of milliseconds at full load, and
everything else would wait that long at each of its steps: the ledger's answers (three a keyed call), timers, health
checks. So a turn begins a bounded amount of work, counted in bytes because a frame may carry one message or hundreds;
what is left over goes on in the next turn, one frame a link in turn, after the loop has looked at its sockets.

Agents and callers have a line each and are served by turns. A few agents answer what many callers ask: in one line,
their answers would wait behind far more new calls than they are themselves, and work that is begun would be finished
last. With two, neither side can hold up the other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

BYTES_A_TURN: Final = 6_144  # some twenty messages, about a millisecond of work


class Reader(Protocol):
    """Has frames that are read and not handled yet."""

    is_in_line: bool  # kept by `Turns`

    @property
    def serves(self) -> bool:
        """Whether it is an agent's, so that most of what it says answers a call."""
        ...

    @property
    def has_frames(self) -> bool:
        """Whether anything is left."""
        ...

    def handle_next(self) -> int:
        """Handle the oldest frame; returns its size in bytes, never 0."""
        ...


class Turns:
    """One for all links of a server."""

    def __init__(self, bytes_a_turn: int = BYTES_A_TURN) -> None:
        self._bytes_a_turn = bytes_a_turn
        self._left = bytes_a_turn
        self._answering: deque[Reader] = deque()
        self._calling: deque[Reader] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None  # while a turn is counted

    def take(self, reader: Reader) -> None:
        """Handle what this one has read: now if the turn has room for it, else when it is its turn."""
        if reader.is_in_line:
            return
        if not self._answering and not self._calling:
            self._count_turn()
            while self._left > 0 and reader.has_frames:
                self._left -= reader.handle_next()
        self._line_up(reader)

    def _count_turn(self) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._loop = None
        self._left = self._bytes_a_turn
        if self._answering or self._calling:
            self._count_turn()
        while self._left > 0 and (self._answering or self._calling):
            for line in (self._answering, self._calling):  # both, however large the first frame is
                if line:
                    self._serve(line.popleft())

    def _serve(self, reader: Reader) -> None:
        reader.is_in_line = False
        if reader.has_frames:
            self._left -= reader.handle_next()
        self._line_up(reader)

    def _line_up(self, reader: Reader) -> None:
        if reader.has_frames:
            reader.is_in_line = True
            (self._answering if reader.serves else self._calling).append(reader)
