"""Locks: how they are asked for, and who holds and waits, as shown."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

LockMode = Literal["exclusive", "shared"]
LockScope = Literal["message", "session"]


class LockPlace(Struct, frozen=True, kw_only=True):
    """Somebody who has a lock, or waits for it. Times are seconds from now; names are plain.

    `since_s`: for how long already. `epoch` and `lease_s` (what is left of the lease) are those of a holder; whoever
    still waits for another of its locks has none. `waits_s` is what is left of the time-out of one who waits.
    """

    id: str
    owner: str
    instance: str
    unit: str
    mode: LockMode
    scope: LockScope
    since_s: float
    epoch: int | None = None
    lease_s: float | None = None
    waits_s: float | None = None


class LockView(Struct, frozen=True, kw_only=True):
    """One lock: who holds it, and who waits, in the order in which they are served."""

    name: str
    held: tuple[LockPlace, ...] = ()
    waiting: tuple[LockPlace, ...] = ()
