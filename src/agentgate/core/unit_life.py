r"""The life of a unit: one execution of a handler, from its claim to its end.

A unit outlives the caller that started it, its connection and even the gate's process, so its life is a machine of
its own (DESIGN 4.1, 4.2)::

    claiming --granted--> running --stop--> told --overstay--> zombie
        \                    |               |                   |
         `------- end -------'------ end ----'------- end -------'--> ended

- `claiming`: the ledger is asked; nothing has been sent.
- `running`: the agent has it. It holds a slot and its token is valid.
- `told`: it was told to stop (its deadline passed, or its caller no longer needs it) and has a moment to end.
- `zombie`: it did not. Its slot is free again and its token is dead; its answer still settles an open record.
- `ended`: an answer came, or it is known to be lost, or it was never sent.
"""

from __future__ import annotations

from typing import Final, Literal

UnitState = Literal["claiming", "running", "told", "zombie", "ended"]
UnitEvent = Literal["granted", "stop", "overstay", "end"]

TABLE: Final[dict[tuple[UnitState, UnitEvent], UnitState]] = {
    ("claiming", "granted"): "running",
    ("claiming", "end"): "ended",
    ("running", "stop"): "told",
    ("running", "end"): "ended",
    ("told", "stop"): "told",  # told to expire first, interrupted later
    ("told", "overstay"): "zombie",
    ("told", "end"): "ended",
    ("zombie", "stop"): "zombie",
    ("zombie", "end"): "ended",
}

LIVE: Final[frozenset[UnitState]] = frozenset({"claiming", "running", "told", "zombie"})
HOLDS_SLOT: Final[frozenset[UnitState]] = frozenset({"running", "told"})
